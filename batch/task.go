package batch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// DefaultMaxTokens bounds answers if a task does not.
const DefaultMaxTokens = 256

// Task is what is asked of each row of a table. For an OpenAI batch file only Extra may be set, as its lines are whole requests.
type Task struct {
	Prompt Prompt `json:"prompt"`
	// Model is sent to the engine; empty: the engine's own.
	Model string `json:"model,omitempty"`
	// MaxTokens bounds an answer; 0: [DefaultMaxTokens].
	MaxTokens int `json:"max_tokens,omitempty"`
	// Temperature is 0 unless it is set, so that an answer can be repeated.
	Temperature float64 `json:"temperature,omitempty"`
	// Schema is a JSON schema that answers must follow; empty: there is none. It is sent to the engine, and each answer is checked.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Extra holds further members of each request's body. They win over the others, and max_completion_tokens takes the place of max_tokens.
	// Messages and streaming cannot be set, nor what asks for more of an answer than its text, such as tools.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
	// Retrieve returns the blocks of a row, by its cells; nil: blocks come from Prompt.Blocks, or there are none. It is called once for
	// each row, before the first request is sent, by up to 16 goroutines at a time. A job that is there is known again by its prompt and
	// its table, not by this function.
	Retrieve func(ctx context.Context, cells map[string]string) ([]contextpilot.Block, error) `json:"-"`
}

func (t *Task) check() error {
	switch {
	case t.MaxTokens < 0:
		return fmt.Errorf("max tokens %d: want at least 1", t.MaxTokens)
	case !(t.Temperature >= 0) || math.IsInf(t.Temperature, 0):
		return fmt.Errorf("temperature %g: want at least 0", t.Temperature)
	case t.Retrieve != nil && t.Prompt.Blocks != "":
		return fmt.Errorf("blocks %q: they come from a column or from a retriever, not from both", t.Prompt.Blocks)
	case !utf8.ValidString(t.Model):
		return fmt.Errorf("model %q: it is not UTF-8", t.Model)
	}
	if len(t.Schema) > 0 {
		if err := dispatch.CheckSchema(t.Schema); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Extra)) {
		switch value := t.Extra[name]; {
		case !json.Valid(value):
			return fmt.Errorf("extra member %q: %q is not JSON", name, shorten(string(value)))
		case name == "messages" || name == "stream" || name == "stream_options":
			return fmt.Errorf("extra member %q: it cannot be set", name)
		}
	}
	if more := asksMore(t.Extra); more != "" {
		return fmt.Errorf("extra member %s: only the text of one answer is kept", more)
	}
	return nil
}

// spec is what is stored with a job: all that workers need to send its requests, and to know the job again.
type spec struct {
	Task
	Table string `json:"table"` // its digest
	Head  string `json:"head,omitempty"`
	Tail  string `json:"tail,omitempty"`
}

// newSpec returns the spec of a task for a table.
func newSpec(t *Task, l *layout, digest string) *spec {
	s := &spec{Task: *t, Table: digest}
	if l != nil {
		s.Head, s.Tail = l.head, l.tail
		s.Prompt.Order = l.order
	}
	return s
}

func readSpec(raw json.RawMessage) (*spec, error) {
	var s spec
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("the job's description cannot be read: %w", err)
	}
	return &s, nil
}

// sameSpec reports whether two jobs ask the same of the same table.
func sameSpec(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// messages returns the chat of a prompt whose units are joined in text.
func (s *spec) messages(text string) []engines.Message {
	user := engines.Message{Role: engines.User, Content: s.Head + text + s.Tail}
	if s.Prompt.System == "" {
		return []engines.Message{user}
	}
	return []engines.Message{{Role: engines.System, Content: s.Prompt.System}, user}
}

// request returns what is sent for a text, or for a whole body.
func (s *spec) request(text string, body json.RawMessage) (engines.Request, error) {
	if len(body) > 0 {
		r, err := bodyRequest(body)
		if err != nil {
			return r, err
		}
		maps.Copy(r.Extra, s.Extra)
		bound(&r)
		return r, nil
	}
	temperature := s.Temperature
	r := engines.Request{
		Model: s.Model, Messages: s.messages(text), MaxTokens: cmp.Or(s.MaxTokens, DefaultMaxTokens), Temperature: &temperature,
		Extra: maps.Clone(s.Extra),
	}
	bound(&r)
	return r, nil
}
