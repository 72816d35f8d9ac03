package engines_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// A guess is sent behind the head, in the order of the index, with the question; the real request follows it.
func TestGuess(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{Part: 250}, func(t *testing.T, w *warmUp) {
		x := w.begin(contextpilot.Request{Query: how})
		x.Guess(pages("a", "b"))
		head := w.engine.seen(t, 1)[0] // the guess waits for it
		head.reply <- nil
		guess := w.engine.seen(t, 2)[1]
		plan := w.pilot.Plan(contextpilot.Request{Query: how, Blocks: pages("c", "b", "a")})
		request := w.build(&plan)
		if blocksOf(guess.req) != "a b" || blocksOf(request) != "a b c" || guess.req.MaxTokens != 1 {
			t.Errorf("guessed %q, for %q, %d tokens", blocksOf(guess.req), blocksOf(request), guess.req.MaxTokens)
		}
		x.Ready(&plan)
		if synctest.Wait(); !guess.wanted() {
			t.Error("a guess that is right was cancelled")
		}
		guess.reply <- nil
		w.stats(engines.WarmerStats{Sent: 2, Computed: 140})
		w.live(2)
	})
}

// A guess that is wrong is cancelled before the real request is sent, and leaves the index.
func TestGuessWrong(t *testing.T) {
	for name, blocks := range map[string][]string{"others": {"x", "y"}, "fewer": {"a"}, "the last differs": {"a", "c"}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			testWarmer(t, engines.WarmerOptions{Part: 250}, func(t *testing.T, w *warmUp) {
				x := w.begin(contextpilot.Request{Query: how})
				w.engine.seen(t, 1)[0].reply <- nil
				x.Guess(pages("a", "b"))
				guess := w.engine.seen(t, 2)[1]
				w.live(1)
				plan := w.real(x, blocks...)
				if guess.wanted() {
					t.Error("the engine still computes it when Ready has returned")
				}
				w.live(1)
				w.stats(engines.WarmerStats{Sent: 2, Computed: 70, Cancelled: 1})
				w.pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: plan.RequestID})
				if m := w.pilot.Match(contextpilot.Request{Blocks: pages("a", "b")}); m.Tokens != 0 {
					t.Errorf("%d tokens of it are believed to be resident", m.Tokens)
				}
				x.Guess(pages("x", "y", "z"))
				w.engine.seen(t, 2)
			})
		})
	}
}

// A guess under an ID whose text has changed meanwhile is wrong.
func TestGuessOldText(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		x := w.begin(contextpilot.Request{})
		w.engine.seen(t, 1)[0].reply <- nil
		x.Guess(pages("a"))
		guess := w.engine.seen(t, 2)[1]
		plan := w.pilot.Plan(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "a", Text: "Other text.", Tokens: 100}}})
		x.Ready(&plan)
		if guess.wanted() {
			t.Error("not cancelled")
		}
	})
}

// A guess that has not reached the engine when the real request is ready is not sent any more, even if it is right.
func TestGuessTooLate(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		x := w.begin(contextpilot.Request{})
		x.Guess(pages("a", "b"))
		head := w.engine.seen(t, 1)[0]
		w.live(1)
		w.real(x, "a", "b")
		head.reply <- nil
		w.engine.seen(t, 1)
		w.live(1)
	})
}

// Later guesses.
func TestGuessAgain(t *testing.T) {
	for _, c := range []struct {
		name, first, second string
		wanted              bool // the first one goes on
		sent                int  // once the first one is answered, or cancelled
	}{
		{"the same", "ab", "ba", true, 1},
		{"more", "ab", "abc", true, 2},
		{"more, in another order", "ab", "cba", true, 2},
		{"fewer", "ab", "a", true, 1},
		{"others", "ab", "xy", false, 2},
		{"some", "ab", "bc", false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			testWarmer(t, engines.WarmerOptions{Part: 250}, func(t *testing.T, w *warmUp) {
				names := func(s string) (out []string) {
					for _, r := range s {
						out = append(out, string(r))
					}
					return out
				}
				x := w.begin(contextpilot.Request{})
				w.engine.seen(t, 1)[0].reply <- nil
				x.Guess(pages(names(c.first)...))
				first := w.engine.seen(t, 2)[1]
				x.Guess(pages(names(c.second)...))
				if synctest.Wait(); first.wanted() != c.wanted {
					t.Fatalf("the first guess goes on: %v", !c.wanted)
				}
				if c.wanted {
					w.engine.seen(t, 2) // the second waits for it
					first.reply <- nil
				}
				w.engine.seen(t, 1+c.sent)
				x.Cancel()
				live := int64(0)
				if c.wanted {
					live = 1 // what was computed stays
				}
				w.live(live)
			})
		})
	}
}

// Of guesses that come at once, the one that was begun last counts, however long they take to plan.
func TestGuessOvertaken(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		slow := make(chan struct{})
		x := w.Begin(t.Context(), contextpilot.Request{}, func(p *contextpilot.Plan) engines.Request {
			if p.Block(0).ID == "old" {
				<-slow
			}
			return w.build(p)
		})
		w.engine.seen(t, 1)[0].reply <- nil
		go x.Guess(pages("old"))
		synctest.Wait()
		x.Guess(pages("new"))
		guess := w.engine.seen(t, 2)[1]
		close(slow)
		w.engine.seen(t, 2)
		if blocksOf(guess.req) != "new" || !guess.wanted() {
			t.Errorf("%q is computed: %v", blocksOf(guess.req), guess.wanted())
		}
		w.live(1)
	})
}

// A guess whose blocks are resident is not sent, and takes the place of one that is not right any more.
func TestGuessResident(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		plan := w.pilot.Plan(contextpilot.Request{Blocks: pages("a", "b")})
		w.served(&plan)
		x := w.begin(contextpilot.Request{HeadTokens: 500})
		w.engine.seen(t, 1)[0].reply <- nil
		x.Guess(pages("x", "y"))
		wrong := w.engine.seen(t, 2)[1]
		x.Guess(pages("b", "a"))
		if synctest.Wait(); wrong.wanted() {
			t.Error("not cancelled")
		}
		w.engine.seen(t, 2)
		w.live(1)
	})
}

func TestGuessLimits(t *testing.T) {
	for name, c := range map[string]struct {
		options engines.WarmerOptions
		req     contextpilot.Request
		want    string
	}{
		"default":         {engines.WarmerOptions{}, contextpilot.Request{}, "a b c"},
		"MaxGuess":        {engines.WarmerOptions{MaxGuess: 250}, contextpilot.Request{}, "a b"},
		"smaller budget":  {engines.WarmerOptions{MaxGuess: 250}, contextpilot.Request{Budget: 100}, "a"},
		"larger budget":   {engines.WarmerOptions{MaxGuess: 250}, contextpilot.Request{Budget: 1000}, "a b"},
		"nothing guessed": {engines.WarmerOptions{MaxGuess: -1}, contextpilot.Request{}, ""},
		"MinTokens":       {engines.WarmerOptions{MinTokens: 400}, contextpilot.Request{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Part = 1000
			testWarmer(t, c.options, func(t *testing.T, w *warmUp) {
				w.system = "Short."
				x := w.begin(c.req)
				x.Guess(pages("a", "b", "c"))
				if c.want == "" {
					w.engine.seen(t, 0)
					w.live(0)
					return
				}
				if got := blocksOf(w.engine.seen(t, 1)[0].req); got != c.want {
					t.Errorf("guessed %q, not %q", got, c.want)
				}
			})
		})
	}
}

// A long guess is sent in parts, so that the real request waits for one of them at most; blocks that are resident need none.
func TestGuessParts(t *testing.T) {
	texts := contextpilot.Block{ID: "long", Text: strings.Repeat("A long story. ", 200)} // 700 tokens, by its text
	for name, c := range map[string]struct {
		blocks   []contextpilot.Block
		resident []string
		part     int
		render   func(*contextpilot.Plan) string
		want     []string
	}{
		"default":      {blocks: pages("a", "b", "c"), want: []string{"a", "a b", "a b c"}},
		"two by two":   {blocks: pages("a", "b", "c", "d", "e"), part: 250, want: []string{"a b", "a b c d", "a b c d e"}},
		"one":          {blocks: pages("a", "b"), part: 250, want: []string{"a b"}},
		"each":         {blocks: pages("a", "b", "c"), part: 1, want: []string{"a", "a b", "a b c"}},
		"long blocks":  {blocks: append(pages("a"), texts), want: []string{"a", "a long"}},
		"resident":     {blocks: pages("a", "b", "c", "d", "e"), resident: []string{"a", "b", "c"}, part: 250, want: []string{"a b c d e"}},
		"own markup":   {blocks: pages("a", "b", "c"), part: 250, render: ownMarkup, want: []string{"a b", "a b c"}},
		"not in there": {blocks: pages("a", "b", "c"), render: func(*contextpilot.Plan) string { return "<doc all>" }, want: []string{"all"}},
	} {
		t.Run(name, func(t *testing.T) {
			testWarmer(t, engines.WarmerOptions{Part: c.part}, func(t *testing.T, w *warmUp) {
				w.system = "Short."
				if c.resident != nil {
					plan := w.pilot.Plan(contextpilot.Request{Blocks: pages(c.resident...)})
					w.served(&plan)
				}
				x := w.Begin(t.Context(), contextpilot.Request{}, func(p *contextpilot.Plan) engines.Request {
					if c.render == nil {
						return w.build(p)
					}
					return engines.Request{Messages: []engines.Message{{Role: engines.User, Content: c.render(p)}}}
				})
				x.Guess(c.blocks)
				for i, want := range c.want {
					call := w.engine.seen(t, i+1)[i]
					if got := blocksOf(call.req); got != want {
						t.Fatalf("part %d: %q, not %q", i+1, got, want)
					}
					messages := call.req.Messages
					last := strings.HasSuffix(messages[len(messages)-1].Content, how)
					if c.render == nil && last != (i == len(c.want)-1) {
						t.Errorf("part %d has the question: %v", i+1, last)
					}
					call.reply <- nil
				}
				w.engine.seen(t, len(c.want))
			})
		})
	}
}

func ownMarkup(p *contextpilot.Plan) (s string) {
	for _, it := range p.Items {
		s += "<doc " + it.Label + "> " + p.Block(it.Index).Text + "\n"
	}
	return s
}

// When the real request is ready, a part goes on if it is right, whatever would have followed, and nothing follows.
func TestGuessPartsReady(t *testing.T) {
	for _, c := range []struct {
		name string
		real []string
		at   int // parts that were computed
		goes bool
	}{
		{"the whole is right", []string{"a", "b", "c"}, 0, true},
		{"the first part is right", []string{"a", "x"}, 0, true},
		{"the second is not", []string{"a", "x"}, 1, false},
		{"nothing is", []string{"x", "y"}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			testWarmer(t, engines.WarmerOptions{Part: 100}, func(t *testing.T, w *warmUp) {
				w.system = "Short."
				x := w.begin(contextpilot.Request{})
				x.Guess(pages("a", "b", "c"))
				for i := range c.at {
					w.engine.seen(t, i+1)[i].reply <- nil
				}
				part := w.engine.seen(t, c.at+1)[c.at]
				w.real(x, c.real...)
				if synctest.Wait(); part.wanted() != c.goes {
					t.Errorf("it goes on: %v", part.wanted())
				}
				w.live(1) // the real one
				part.reply <- nil
				w.engine.seen(t, c.at+1)
				w.live(1)
			})
		})
	}
}

// A conversation is not changed by a guess.
func TestGuessConversation(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		x := w.Begin(t.Context(), contextpilot.Request{Session: "s"}, func(p *contextpilot.Plan) engines.Request {
			if p.Session != "s" {
				t.Errorf("build is given a plan of session %q", p.Session)
			}
			return w.build(p)
		})
		x.Guess(pages("a", "b"))
		plan := w.pilot.Plan(contextpilot.Request{Session: "s", Blocks: pages("a", "b")})
		x.Ready(&plan)
		if plan.Turn != 1 || len(plan.Items) != 2 || plan.Items[0].Ref != nil {
			t.Error(plan.Explain())
		}
	})
}
