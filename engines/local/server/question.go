package server

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"net/http"

	"github.com/ragpilot/ragpilot/engines"
)

// question is a completion that was asked for.
type question struct {
	kind     *kind
	id       string // the request's own, or a random one
	model    string
	context  string // a compressed one; empty: none
	prompts  [][]int32
	stream   bool
	usage    bool // in a last chunk of its own
	tokenIDs bool // the prompt's tokens come with the answer
	request  engines.Request
}

// maxID bounds a request's ID in bytes.
const maxID = 512

// defaultCompletion is how many tokens a completion has that does not say; a chat has as many as the engine says.
const defaultCompletion = 16

// ask reads a request for a completion.
func (s *Server) ask(m members, header http.Header, k *kind) (*question, error) {
	q := &question{kind: k, id: header.Get("X-Request-Id")}
	if q.id == "" {
		if err := m.get("request_id", &q.id, "a text"); err != nil {
			return nil, err
		}
	}
	if len(q.id) > maxID {
		return nil, wrong("request_id", "request ID of %d bytes: want at most %d", len(q.id), maxID)
	}
	if q.id == "" {
		q.id = rand.Text()
	}
	var options struct {
		Usage     bool `json:"include_usage"`
		Continual bool `json:"continuous_usage_stats"`
	}
	var stops []json.RawMessage
	var number float64
	var whole int64
	var yes bool
	var text string
	var blocks []engines.BlockSpan
	for _, x := range []struct {
		name, want string
		to         any
	}{
		{"stream", "true or false", &q.stream},
		{"stream_options", "an object", &options},
		{"return_token_ids", "true or false", &q.tokenIDs},
		{"temperature", "a number", &number}, // what follows is the engine's, which says what its values may be
		{"top_p", "a number", &number},
		{"seed", "a whole number", &whole},
		{"max_tokens", "a whole number", &whole},
		{"max_completion_tokens", "a whole number", &whole},
		{"ignore_eos", "true or false", &yes},
		{"cache_salt", "a text", &text},
		{"context", "a text", &q.context},
		{"repetition_penalty", "a number", &number},
		{"no_repeat_ngram_size", "a whole number", &whole},
		{"reuse", "a text", &text},
		{"recompute", "a number", &number},
		{"blocks", "a list of objects with message, from and to", &blocks},
	} {
		if err := m.get(x.name, x.to, x.want); err != nil {
			return nil, err
		}
	}
	if json.Unmarshal(m["stop"], &stops) == nil && len(stops) > maxStops {
		return nil, wrong("stop", "stop: %d texts, want at most %d", len(stops), maxStops)
	}
	if options.Continual {
		return nil, wrong("stream_options", "stream_options.continuous_usage_stats true: not supported by this server")
	}
	q.usage = options.Usage
	if err := m.understood(); err != nil {
		return nil, err
	}
	var err error
	if q.model, err = s.model(m); err != nil {
		return nil, err
	}
	q.request = engines.Request{Extra: map[string]json.RawMessage{}, Blocks: blocks}
	for name := range engineMembers {
		if raw := m[name]; given(raw) {
			if len(raw) > 64<<10 {
				return nil, wrong(name, "%s %s: too long", name, excerpt(raw))
			}
			q.request.Extra[name] = raw
		}
	}
	return q, s.prompts(q, m)
}

// model checks which model is asked for. None is the one that is served.
func (s *Server) model(m members) (string, error) {
	name := s.engine.Model()
	if err := m.get("model", &name, "a text"); err != nil {
		return "", err
	}
	if name = cmp.Or(name, s.engine.Model()); name != s.engine.Model() { // vLLM takes an empty one for none, too
		return "", noModel(name)
	}
	return name, nil
}

func noModel(name string) *refusal {
	e := wrong("model", "model %q is not served here", shorten(name, 80))
	e.status = http.StatusNotFound
	return e
}

func (s *Server) prompts(q *question, m members) (err error) {
	if q.kind.chat {
		chat, err := m.messages()
		if err != nil {
			return err
		}
		size := 0
		for _, x := range chat {
			size += len(x.Content)
		}
		if err := s.fits("messages", size); err != nil {
			return err
		}
		q.request.Messages = chat
		tokens, blocks, err := s.engine.TokenizeBlocks(q.request)
		q.prompts, q.request.Messages, q.request.Blocks = [][]int32{tokens}, nil, blocks
		return err
	}
	if len(q.request.Blocks) > 0 {
		return wrong("blocks", "blocks: only /v1/chat/completions takes them")
	}
	tokenize := s.engine.Tokenize
	special := true
	if err := m.get("add_special_tokens", &special, "true or false"); err != nil {
		return err
	}
	if !special {
		tokenize = s.engine.TokenizeBare
	}
	q.prompts, err = m.prompts(func(text string) ([]int32, error) {
		if err := s.fits("prompt", len(text)); err != nil {
			return nil, err
		}
		return tokenize(text), nil
	})
	return err
}

// Tokenizing takes up to 60 times a text's memory.
const (
	// longestToken is more bytes than a token of any vocabulary that we have seen stands for.
	longestToken = 512
	maxText      = 1 << 20 // bytes that /tokenize takes, where no window bounds them
)

// fits refuses a text that is longer than any of as many tokens as there is room for, before it is tokenized.
func (s *Server) fits(member string, size int) error {
	if most := (s.engine.Context() + 1) * longestToken; size > most {
		return wrong(member, "%s: %d bytes are more than the %d tokens that there is room for", member, size, s.engine.Context())
	}
	return nil
}

// tokenizable refuses a text that is too long for /tokenize.
func (s *Server) tokenizable(member, text string) error {
	if most := max(maxText, (s.engine.Context()+1)*longestToken); len(text) > most {
		return wrong(member, "%s: %d bytes, want at most %d", member, len(text), most)
	}
	return nil
}

// prompt is the request for one of the prompts.
func (s *Server) prompt(q *question, i int) engines.Request {
	req := q.request
	req.ID = q.id
	if len(q.prompts) > 1 {
		req.ID = q.kind.number(q.id, i)
	}
	_, short := req.Extra["max_tokens"]
	_, long := req.Extra["max_completion_tokens"]
	if !short && !long && !q.kind.chat {
		room, _ := s.engine.Room(q.context) // the engine refuses a context that it has not
		req.MaxTokens = max(1, min(defaultCompletion, room-len(q.prompts[i])))
	}
	return req
}
