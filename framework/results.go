package framework

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/base/strictjson"
)

// toolResults decide what of tools' results is sent.
type toolResults struct {
	*shared
	as      conversation.Conversation
	replace bool // else they are only fenced
}

func newToolResults(pilot *contextpilot.Pilot, o *Options) toolResults {
	r := toolResults{shared: sharedOf(pilot), replace: o.ToolResults}
	// The scope is part of the key, and not the engine's tenant: an engine that has too many tenants drops the prompts of
	// one from the pilot's index, which here are not its own.
	r.as.Key = strconv.FormatBool(o.ToolResults)
	if o.Scope != nil {
		r.as.Key = fmt.Sprintf("%s %q %q %q", r.as.Key, o.Scope.Tenant, o.Scope.Model, o.Scope.Replica)
	}
	r.as.Look.Tools = o.ToolResults
	return r
}

// edit decides about the results in the first n messages, all of which are as they are sent but for results.
func (r *toolResults) edit(t *transcript, n int) {
	for n > 0 && !hasResult(&t.messages[n-1]) {
		n--
	}
	if n <= t.edited {
		return
	}
	if t.edited == 0 {
		t.nameCalls()
	}
	t.edited = n
	out, err := r.engine.Begin(context.Background(), r.as, &source{transcript: t, n: n, seed: r.seed, replace: r.replace})
	if err != nil {
		return // it is the context's, which does not end
	}
	t.edits = make(map[at]string, len(out.Edits))
	for _, e := range out.Edits { // of results: all else is fixed
		t.edits[at{e.Message, e.Text}] = e.With
	}
}

func hasResult(m *Message) bool {
	for j := range m.Texts {
		if m.role(j) == conversation.Tool {
			return true
		}
	}
	return false
}

// nameCalls names results that say no call: by tool and number.
func (t *transcript) nameCalls() {
	n := map[string]int{}
	for i := range t.messages {
		for j, text := range t.messages[i].Texts {
			if text.Call != "" || text.Opaque || t.messages[i].role(j) != conversation.Tool {
				continue
			}
			tool := cmp.Or(text.Tool, "tool")
			n[tool]++
			t.own(i)[j].Call = tool + "#" + strconv.Itoa(n[tool])
		}
	}
}

// source is the beginning of a transcript, for the engine.
type source struct {
	*transcript
	n    int
	seed uint64

	replace bool

	hasher *xxh3.Hasher128
}

// Len returns the number of messages.
func (s *source) Len() int { return s.n }

// Role returns the role of message i.
func (s *source) Role(i int) conversation.Role { return s.messages[i].Role }

// Load writes message i into m.
func (s *source) Load(i int, m *conversation.Message) {
	msg := &s.messages[i]
	m.Role = msg.Role
	for j, text := range msg.Texts {
		text.Role = msg.role(j)
		text.Fixed, text.Rows = text.Role != conversation.Tool, s.replace && !text.Opaque
		if text.Fixed && !s.replace { // nothing is to refer to it
			text = conversation.Text{}
		}
		m.Texts = append(m.Texts, text)
	}
	for _, c := range msg.Calls {
		if c.ID != "" {
			m.Calls = append(m.Calls, c)
		}
	}
}

// Sum stands for all that the model reads of message i. A call asks for those of the first messages at most twice.
func (s *source) Sum(i int) conversation.Sum {
	for len(s.sums) <= i {
		if s.hasher == nil {
			s.hasher = xxh3.NewSeed128(s.seed)
		}
		s.sums = append(s.sums, sumOf(s.hasher, s.seed, &s.messages[len(s.sums)]))
	}
	return s.sums[i]
}

// sumOf hashes a message. Each piece stands behind its length, and each list behind its own.
func sumOf(h *xxh3.Hasher128, seed uint64, m *Message) conversation.Sum {
	h.ResetSeed(seed)
	number := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		_, _ = h.Write(b[:]) // never fails (hash.Hash)
	}
	piece := func(s string) {
		number(len(s))
		_, _ = h.WriteString(s)
	}
	number(int(m.Role))
	number(len(m.Texts))
	for i := range m.Texts {
		text := &m.Texts[i]
		kind := int(text.Role)
		if text.Opaque {
			kind = -1 - kind
		}
		number(kind)
		piece(text.Value)
		piece(text.Call)
		piece(text.Tool)
	}
	number(len(m.Calls))
	for _, c := range m.Calls {
		piece(c.ID)
		piece(c.Tool)
	}
	number(len(m.Other))
	for _, o := range m.Other {
		switch o := o.(type) {
		case string:
			piece(o)
		case []byte:
			piece(string(o))
		default:
			piece(written(o))
		}
	}
	return h.Sum128()
}

// written returns something as JSON, or at least by its type.
func written(v any) string {
	s, err := strictjson.Encode(v)
	if err != nil {
		return fmt.Sprintf("%T: %v", v, err)
	}
	return s
}
