package contextpilot_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// counter counts as the simulated engine does.
type counter struct{}

func (counter) Count(text string) int { return tokens.Count(text) }

// An engine loses its cache and reports nothing. From its answers the pilot learns to expect the right thing from
// the second answer on; without, it stays wrong about every branch until that is asked for again.
func TestSilentLoss(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprint("known=", known), func(t *testing.T) {
			engine := sim.New(sim.Options{CapacityTokens: 1 << 20})
			p := newPilot(t, contextpilot.Config{Policy: "retrieval", Tokenizer: counter{}})
			engine.Subscribe(func(events ...contextpilot.Event) {
				for _, ev := range events {
					if ev.Kind == contextpilot.Served { // no others: an engine that reports no evictions
						ev.CachedKnown = ev.CachedKnown && known
						p.Observe(ev)
					}
				}
			})
			ask := func(names string) (expected, found int) {
				t.Helper()
				var bs []contextpilot.Block
				for name := range strings.FieldsSeq(names) {
					bs = append(bs, contextpilot.Block{ID: name, Text: strings.TrimSpace(strings.Repeat(name+" is good. ", 60))})
				}
				plan := p.Plan(contextpilot.Request{Blocks: bs, Query: "What is good?"})
				res, err := engine.Generate(t.Context(), engines.Request{
					ID: plan.RequestID, Messages: []engines.Message{{Role: engines.User, Content: plan.Prompt("What is good?")}},
				}, nil)
				if err != nil {
					t.Fatal(err)
				}
				return plan.Prefix.Tokens, res.Usage.CachedTokens
			}
			for _, names := range []string{"a b c", "a b d", "a b e", "x y"} {
				ask(names)
			}
			const near = 100 // less than a block's text
			for _, names := range []string{"a b c", "a b d"} {
				if expected, found := ask(names); expected < found-near || expected > found+near {
					t.Errorf("%s: %d tokens expected, %d found", names, expected, found)
				}
			}
			if st := p.Stats(); st.Contradicted != 0 {
				t.Fatalf("%d contradictions by an engine that lost nothing", st.Contradicted)
			}

			engine.Reset()
			if expected, found := ask("a b c"); expected < 2*near || found != 0 {
				t.Fatalf("%d tokens expected, %d found: nothing was lost", expected, found)
			}
			expected, found := ask("a b d")
			if right := expected <= found+near; right != known {
				t.Errorf("after the loss: %d tokens expected, %d found", expected, found)
			}
			if expected < found-near {
				t.Errorf("after the loss: only %d tokens expected, %d found", expected, found)
			}
			// The first answer took the ends of the earlier ones: a b c twice, a b d twice, a b e.
			if st := p.Stats(); known && (st.Contradicted != 1 || st.Shortened != 5) {
				t.Errorf("%d contradictions shortened %d requests, want 1 and 5", st.Contradicted, st.Shortened)
			}
		})
	}
}

// Equal prompts that are in flight together all find nothing, which contradicts nothing.
func TestTogetherFindNothing(t *testing.T) {
	const n = 200
	p := newPilot(t, contextpilot.Config{})
	var wait, planned sync.WaitGroup
	planned.Add(n)
	for i := range n {
		wait.Go(func() {
			plan := p.Plan(contextpilot.Request{Query: "?", Blocks: blocks("a", "b", "c", fmt.Sprint("own", i%10))})
			planned.Done()
			planned.Wait()
			p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID, CachedKnown: true, Output: 5})
		})
	}
	wait.Wait()
	st := p.Stats()
	if st.Contradicted != 0 || st.Shortened != 0 || st.LiveRequests != n {
		t.Errorf("%d contradictions shortened %d of %d requests", st.Contradicted, st.Shortened, st.LiveRequests)
	}
	for i := range 10 {
		plan := p.Plan(contextpilot.Request{Query: "?", Blocks: blocks("a", "b", "c", fmt.Sprint("own", i))})
		if plan.Prefix.Blocks != 4 {
			t.Errorf("own%d: %d blocks expected, want 4", i, plan.Prefix.Blocks)
		}
		p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: plan.RequestID})
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// What an answer must say to be believed. Two requests were answered that begin with three blocks of 32 tokens, behind a
// head of 50; the third begins so, too.
func TestContradiction(t *testing.T) {
	for name, c := range map[string]struct {
		ev   contextpilot.Event
		want int64 // contradictions
	}{
		"nothing known":              {contextpilot.Event{}, 0},
		"nothing there":              {contextpilot.Event{CachedKnown: true}, 1},
		"all there":                  {contextpilot.Event{CachedKnown: true, Tokens: 144}, 0},
		"a block and an eighth less": {contextpilot.Event{CachedKnown: true, Tokens: 108}, 0},
		"more than that less":        {contextpilot.Event{CachedKnown: true, Tokens: 107}, 1},
		"counted as planned":         {contextpilot.Event{CachedKnown: true, Tokens: 107, Prompt: 178}, 1},
		"a shorter prompt, counted":  {contextpilot.Event{CachedKnown: true, Tokens: 107, Prompt: 155}, 0},
		"a longer prompt, counted":   {contextpilot.Event{CachedKnown: true, Tokens: 107, Prompt: 201}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{Policy: "retrieval"})
			plan := func(id, last string) {
				p.Plan(contextpilot.Request{ID: id, HeadTokens: 50, Blocks: blocks("a", "b", "c", last)})
			}
			for _, id := range []string{"1", "2"} {
				plan(id, id)
				p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: id})
			}
			plan("3", "3")
			c.ev.Kind, c.ev.Request = contextpilot.Served, "3"
			for range 2 { // the second report is of what is known
				p.Observe(c.ev)
			}
			if st := p.Stats(); st.Contradicted != c.want || st.Shortened != 2*c.want {
				t.Errorf("%d contradictions shortened %d requests, want %d and %d", st.Contradicted, st.Shortened, c.want, 2*c.want)
			}
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// BenchmarkServed reports an answer whose cached tokens are known, of 15 blocks.
func BenchmarkServed(b *testing.B) {
	const live, k = 10_000, 15
	sets := contexts(live+1000, k)
	p := loaded(b, "paper", live, sets)
	for i := range live {
		p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: fmt.Sprint("live", i)})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		b.StopTimer()
		plan := p.Plan(contextpilot.Request{ID: "guest", Blocks: sets[live+i%1000]})
		ev := contextpilot.Event{Kind: contextpilot.Served, Request: "guest", Tokens: plan.Prefix.Tokens, CachedKnown: true, Output: 10}
		b.StartTimer()
		p.Observe(ev)
		b.StopTimer()
		p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "guest"})
		b.StartTimer()
		i++
	}
}
