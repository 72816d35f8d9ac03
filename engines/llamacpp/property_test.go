package llamacpp_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// Whatever is sent, and however often the server restarts: the prediction is the report, and what the events leave of a
// request lies in some slot.
func TestPredictionAndEventsProperty(t *testing.T) {
	testkit.NotUnderRace(t)
	for name, traits := range map[string]traits{
		"this release":          {},
		"process not named":     {noMarker: true},
		"some tokens not given": {hidden: func(i int) bool { return i%3 == 1 }},
		"text of other tokens":  {hidden: func(i int) bool { return i == 2 }, unlikeText: true},
		"slot chosen by server": {},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				traits := traits
				traits.slots = rapid.IntRange(1, 4).Draw(r, "slots")
				f := startFake(t, traits)
				defer f.stop()
				engine, l := f.engine(func(c *llamacpp.Config) { c.Unpinned = name == "slot chosen by server" })
				defer engine.Close()
				var chats [3][]engines.Message
				last := map[string]string{}
				for i := range rapid.IntRange(1, 16).Draw(r, "requests") {
					if rapid.IntRange(0, 9).Draw(r, "restart") == 0 {
						f.restart()
					}
					chat := &chats[rapid.IntRange(0, 2).Draw(r, "chat")]
					if rapid.IntRange(0, 5).Draw(r, "fresh") == 0 {
						*chat = nil
					}
					text := fmt.Sprintf("%d %d %d q%d", rapid.IntRange(0, 1).Draw(r, "a"), rapid.IntRange(0, 1).Draw(r, "b"),
						rapid.IntRange(0, 2).Draw(r, "c"), i)
					*chat = append(*chat, engines.Message{Role: engines.User, Content: text})
					req := engines.Request{ID: fmt.Sprint("r", i), Messages: *chat, MaxTokens: rapid.IntRange(2, 6).Draw(r, "max")}
					response, err := engine.Generate(t.Context(), req, nil)
					if err != nil {
						r.Fatal(err)
					}
					*chat = append(*chat, engines.Message{Role: engines.Assistant, Content: response.Text})
					last[req.ID] = text
					p := l.of(req.ID)
					if p.Cached > response.Usage.CachedTokens || p.Exact && p.Cached != response.Usage.CachedTokens {
						r.Fatalf("%s: predicted %+v, usage %+v", req.ID, p, response.Usage)
					}
					if !p.Exact && !traits.unlikeText {
						r.Fatalf("%s: %+v is not exact", req.ID, p)
					}
					for _, id := range l.lost {
						if got := f.left(last[id]); got != l.last[id] && !traits.unlikeText {
							r.Fatalf("after %s: %d tokens of %s are left by its event, the slots have %d", req.ID, l.last[id], id, got)
						}
					}
					l.lost = nil
					for id, left := range l.resident {
						if got := f.left(last[id]); got < left {
							r.Fatalf("after %s: the events leave %d tokens of %s, the slots have %d", req.ID, left, id, got)
						}
					}
				}
				if l.count(contextpilot.Served) != len(last) {
					r.Fatalf("%d Served events for %d requests", l.count(contextpilot.Served), len(last))
				}
			})
		})
	}
}
