package conversation_test

import (
	"context"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

func newEngine(t tester, store orders.Store) *conversation.Engine {
	pilot, err := contextpilot.New(contextpilot.Config{
		Top: contextpilot.TopNear, Dedup: contextpilot.DedupOff, Notes: contextpilot.Notes{Hint: contextpilot.HintNone},
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := conversation.New(pilot, conversation.Options{Orders: store})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// forward returns the messages as an engine forwards them for a tenant.
func forward(t tester, e *conversation.Engine, c conversation.Conversation, m messages) messages {
	t.Helper()
	turn, err := e.Begin(context.Background(), c, m)
	if err != nil {
		t.Fatal(err)
	}
	turn.Done(conversation.Outcome{Cached: -1})
	out := make(messages, len(m))
	for i := range m {
		out[i] = m[i]
		out[i].Texts = append([]conversation.Text(nil), m[i].Texts...)
	}
	for _, ed := range turn.Edits {
		out[ed.Message].Texts[ed.Text].Value = ed.With
	}
	return out
}

var looked = conversation.Conversation{Model: "m", Look: conversation.Look{System: true, Tools: true}}

// tester is a *testing.T, or a *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
}
