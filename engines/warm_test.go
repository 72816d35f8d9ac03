package engines_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

func TestNewWarmer(t *testing.T) {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	for want, o := range map[string]engines.WarmerOptions{
		"Engine": {Pilot: pilot},
		"Pilot":  {Engine: &heldEngine{}},
	} {
		if _, err := engines.NewWarmer(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: %v", want, err)
		}
	}
}

// The head is sent as it will stand in the real prompt, without question and blocks, for one token.
func TestWarmHead(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		x := w.begin(contextpilot.Request{Query: how})
		call := w.engine.seen(t, 1)[0]
		want := []engines.Message{{Role: engines.System, Content: w.system}, {Role: engines.User, Content: manual}}
		if diff := cmp.Diff(want, call.req.Messages); diff != "" || call.req.MaxTokens != 1 || !strings.HasPrefix(call.req.ID, "warm-") {
			t.Errorf("%d tokens for %q (-want +got):\n%s", call.req.MaxTokens, call.req.ID, diff)
		}
		w.live(0)
		plan := w.real(x, "a", "b")
		if synctest.Wait(); !call.wanted() {
			t.Error("a head that is right was cancelled")
		}
		call.reply <- nil
		w.served(&plan)
		w.stats(engines.WarmerStats{Sent: 1, Computed: 70})

		w.begin(contextpilot.Request{Query: "Something else?"})
		w.engine.seen(t, 1)
		w.stats(engines.WarmerStats{Sent: 1, Computed: 70, Skipped: 1})
	})
}

// What build does decides where a head ends.
func TestWarmHeadForms(t *testing.T) {
	long := strings.Repeat("Answer from the documents. ", 20)
	user := func(text string) engines.Message { return engines.Message{Role: engines.User, Content: text} }
	system := func(text string) engines.Message { return engines.Message{Role: engines.System, Content: text} }
	for name, c := range map[string]struct {
		build func(*contextpilot.Plan) []engines.Message
		want  []engines.Message // nil: nothing is sent
	}{
		"blocks first in the user's message": {
			func(p *contextpilot.Plan) []engines.Message {
				return []engines.Message{system(long), user(p.Prompt("?"))}
			},
			[]engines.Message{system(long), user(".")},
		},
		"one message": {
			func(p *contextpilot.Plan) []engines.Message { return []engines.Message{user(long + p.Prompt("?"))} },
			[]engines.Message{user(long)},
		},
		"blocks in the system message": {
			func(p *contextpilot.Plan) []engines.Message {
				return []engines.Message{system(long + p.Context()), user("?")}
			},
			[]engines.Message{system(long), user(".")},
		},
		"markup of its own": {
			func(p *contextpilot.Plan) []engines.Message {
				return []engines.Message{system(long), user("Documents:\n" + p.Block(p.Items[0].Index).Text + "\n?")}
			},
			[]engines.Message{system(long), user("Documents:\n")},
		},
		"as chains join documents": {
			func(p *contextpilot.Plan) []engines.Message {
				return []engines.Message{user(long + strings.TrimSuffix(p.RenderItem(0), "\n") + "\n\nQuestion: ?")}
			},
			[]engines.Message{user(long)},
		},
		"blocks not shown": {
			func(*contextpilot.Plan) []engines.Message { return []engines.Message{system(long), user("?")} },
			[]engines.Message{system(long), user("?")},
		},
		"nothing in front": {func(p *contextpilot.Plan) []engines.Message { return []engines.Message{user(p.Prompt("?"))} }, nil},
		"short": {func(p *contextpilot.Plan) []engines.Message {
			return []engines.Message{system("Hi."), user(p.Prompt("?"))}
		}, nil},
		"no messages": {func(*contextpilot.Plan) []engines.Message { return nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
				w.Begin(t.Context(), contextpilot.Request{HeadTokens: 500}, func(p *contextpilot.Plan) engines.Request {
					return engines.Request{Messages: c.build(p)}
				})
				if c.want == nil && (name == "short") { // the caller says that it is long
					c.want = []engines.Message{system("Hi."), user(".")}
				}
				if c.want == nil {
					w.engine.seen(t, 0)
					return
				}
				if diff := cmp.Diff(c.want, w.engine.seen(t, 1)[0].req.Messages); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Members that would make the answer long, or several, are not sent; those that the cache depends on are.
func TestWarmExtra(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		raw := func(s string) json.RawMessage { return json.RawMessage(s) }
		extra := map[string]json.RawMessage{
			"max_tokens": nil, "max_completion_tokens": raw("500"), "min_tokens": raw("9"),
			"n": raw("3"), "best_of": raw("3"), "cache_salt": raw(`"s"`),
		}
		w.Begin(t.Context(), contextpilot.Request{}, func(p *contextpilot.Plan) engines.Request {
			req := w.build(p)
			req.Extra = extra
			return req
		})
		want := map[string]json.RawMessage{"max_tokens": nil, "max_completion_tokens": raw("1"), "cache_salt": raw(`"s"`)}
		if diff := cmp.Diff(want, w.engine.seen(t, 1)[0].req.Extra); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if len(extra) != 6 || string(extra["n"]) != "3" {
			t.Errorf("the caller's members are changed: %s", extra)
		}
	})
}

// A server that does not stop after one token is stopped, and has computed the prompt.
func TestWarmLongAnswer(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		w.begin(contextpilot.Request{})
		call := w.engine.seen(t, 1)[0]
		call.pieces = 1000
		call.reply <- nil
		w.stats(engines.WarmerStats{Sent: 1})
		w.begin(contextpilot.Request{})
		w.engine.seen(t, 1)
	})
}

// A head is computed again when the cache has lost it, however that comes to light.
func TestWarmAgain(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(w *warmUp, plan *contextpilot.Plan)
		sent int
	}{
		"nothing lost": {func(*warmUp, *contextpilot.Plan) {}, 1},
		"cleared":      {func(w *warmUp, _ *contextpilot.Plan) { w.pilot.Observe(contextpilot.Event{Kind: contextpilot.Cleared}) }, 2},
		"all evicted": {func(w *warmUp, plan *contextpilot.Plan) {
			w.pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: plan.RequestID})
		}, 2},
		"blocks evicted": {func(w *warmUp, plan *contextpilot.Plan) {
			w.pilot.Observe(contextpilot.Event{Kind: contextpilot.Shrunk, Request: plan.RequestID, Tokens: 280})
		}, 1},
		"replica dropped": {func(w *warmUp, _ *contextpilot.Plan) { w.pilot.DropReplica("") }, 2},
		"another head":    {func(w *warmUp, _ *contextpilot.Plan) { w.system = strings.Repeat("Speak like a pirate. ", 20) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
				x := w.begin(contextpilot.Request{HeadTokens: 150})
				w.engine.seen(t, 1)[0].reply <- nil
				synctest.Wait()
				plan := w.pilot.Plan(contextpilot.Request{Query: how, HeadTokens: 150, Blocks: pages("a", "b")})
				x.Ready(&plan)
				w.served(&plan)
				c.lose(w, &plan)
				w.begin(contextpilot.Request{HeadTokens: 150, Query: "Why?"})
				w.engine.seen(t, c.sent)
			})
		})
	}
}

// A head that was computed, but not yet followed by a request, is not computed again.
func TestWarmTwice(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		w.begin(contextpilot.Request{})
		w.engine.seen(t, 1)[0].reply <- nil
		synctest.Wait()
		w.begin(contextpilot.Request{})
		w.engine.seen(t, 1)
	})
}

// Another scope is another cache.
func TestWarmScopes(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		w.begin(contextpilot.Request{Scope: contextpilot.Scope{Tenant: "a"}})
		w.begin(contextpilot.Request{Scope: contextpilot.Scope{Tenant: "b"}})
		w.engine.seen(t, 2)
	})
}

// The history of a conversation is computed with the head, if its blocks are not in the cache any more.
func TestWarmHistory(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		first := w.pilot.Plan(contextpilot.Request{Session: "s", HeadTokens: 135, Query: how, Blocks: pages("a", "b")})
		chat := []engines.Message{
			{Role: engines.System, Content: w.system},
			{Role: engines.User, Content: first.Prompt(how)},
			{Role: engines.Assistant, Content: "Twice a year."},
		}
		x := w.begin(contextpilot.Request{HeadTokens: 135}) // the head is not known to this warmer
		w.engine.seen(t, 1)[0].reply <- nil
		synctest.Wait()
		x.Ready(&first)
		w.pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: first.RequestID, Output: 10})

		next := contextpilot.Request{
			Session: "s", HeadTokens: 135, Prior: []string{chat[1].Content, chat[2].Content},
			Behind: first.End.Answered(10),
		}
		build := func(p *contextpilot.Plan) engines.Request {
			return engines.Request{Messages: append(slices.Clone(chat), engines.Message{Role: engines.User, Content: p.Prompt("And in winter?")})}
		}
		w.Begin(t.Context(), next, build)
		w.engine.seen(t, 1) // all of it is resident
		w.pilot.Observe(contextpilot.Event{Kind: contextpilot.Shrunk, Request: first.RequestID, Tokens: 135 + 50})
		y := w.Begin(t.Context(), next, build)
		got := w.engine.seen(t, 2)[1]
		if diff := cmp.Diff(append(chat, engines.Message{Role: engines.User, Content: "."}), got.req.Messages); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		y.Guess(pages("c")) // not behind a history
		w.engine.seen(t, 2)
		w.live(1) // half a block of the first turn is left
	})
}

// A head that several requests need at once is computed once, for as long as any of them wants it.
func TestWarmShared(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		ctx, leave := context.WithCancel(t.Context())
		w.Begin(ctx, contextpilot.Request{Query: how}, w.build)
		second := w.begin(contextpilot.Request{Query: "Something else?"})
		ctx3, leave3 := context.WithCancel(t.Context())
		w.Begin(ctx3, contextpilot.Request{}, w.build)
		call := w.engine.seen(t, 1)[0]
		w.stats(engines.WarmerStats{Sent: 1, Shared: 2})
		leave() // the one that sent it
		leave3()
		if synctest.Wait(); !call.wanted() {
			t.Fatal("cancelled although one waits")
		}
		second.Cancel()
		second.Cancel()
		if synctest.Wait(); call.wanted() {
			t.Error("not cancelled although no request waits")
		}
		w.stats(engines.WarmerStats{Sent: 1, Shared: 2, Cancelled: 1})
		w.begin(contextpilot.Request{}).Cancel()
		w.begin(contextpilot.Request{}) // does not rely on what ends
		w.live(0)
		if calls := w.engine.calls; !calls[len(calls)-1].wanted() {
			t.Error("nothing is computed for the last")
		}
	})
}

// ownContext is a context that package context cannot look into.
type ownContext struct {
	context.Context // it is one
	done            chan struct{}
}

func (c ownContext) Done() <-chan struct{} { return c.done }

// Nothing watches a request's context when there is nothing to give up; the bubble would not end.
func TestWarmForeignContext(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		ctx := ownContext{t.Context(), make(chan struct{})}
		x := w.Begin(ctx, contextpilot.Request{}, w.build)
		w.engine.seen(t, 1)[0].reply <- nil
		x.Guess(pages("a", "b"))
		w.engine.seen(t, 2)[1].reply <- nil
		w.real(x, "a", "b")
	})
}

// A request that has been given up already begins nothing.
func TestWarmEndedContext(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		x := w.Begin(ctx, contextpilot.Request{}, w.build)
		x.Guess(pages("a", "b"))
		w.engine.seen(t, 0)
		w.live(0)
	})
}

func TestWarmLimits(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{MaxWarmups: 2}, func(t *testing.T, w *warmUp) {
		for _, tenant := range []string{"a", "b", "c"} {
			w.begin(contextpilot.Request{Scope: contextpilot.Scope{Tenant: tenant}})
		}
		calls := w.engine.seen(t, 2)
		w.stats(engines.WarmerStats{Sent: 2, Skipped: 1})
		calls[0].reply <- nil
		synctest.Wait()
		w.begin(contextpilot.Request{Scope: contextpilot.Scope{Tenant: "c"}})
		w.engine.seen(t, 3)
		w.Close()
		for _, c := range calls[1:] {
			if c.wanted() {
				t.Error("not cancelled by Close")
			}
		}
		w.begin(contextpilot.Request{Scope: contextpilot.Scope{Tenant: "d"}})
		w.engine.seen(t, 3)
		w.Close()
	})
}
