package sim_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// replay sends a trace through an engine one request after the other and returns each one's usage. A nil plan is
// retrieval order; without history every request is a first turn. The engine must answer with trace.Answer,
// see answering.
func replay(
	t testing.TB, e *sim.Engine, requests []trace.Request, blocks *trace.Blocks, plan []trace.Plan, history bool,
) []engines.Usage {
	t.Helper()
	prompts := trace.Prompts{Blocks: blocks}
	chats := map[string][]engines.Message{}
	var out []engines.Usage
	for i, q := range requests {
		p := q.Plain()
		if plan != nil {
			p = plan[i]
		}
		user, err := prompts.User(q, p)
		if err != nil {
			t.Fatal(err)
		}
		chat := chats[q.Session]
		if chat == nil || !history {
			chat = []engines.Message{{Role: engines.System, Content: trace.System}}
		}
		chat = append(chat, engines.Message{Role: engines.User, Content: user})
		response, err := e.Generate(t.Context(), engines.Request{ID: q.ID, Messages: chat}, nil)
		if err != nil {
			t.Fatal(err)
		}
		chats[q.Session] = append(chat, engines.Message{Role: engines.Assistant, Content: response.Text})
		out = append(out, response.Usage)
	}
	return out
}

// answering makes a Reply that gives each request of a trace its answer.
func answering(requests []trace.Request) func(engines.Request) string {
	answers := make(map[string]string, len(requests))
	for _, q := range requests {
		answers[q.ID] = trace.Answer(q)
	}
	return func(req engines.Request) string { return answers[req.ID] }
}
