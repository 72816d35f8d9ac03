package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// TestEvents follows the life of a few requests in a cache of eight blocks.
func TestEvents(t *testing.T) {
	scope := contextpilot.Scope{Model: "m", Replica: "r1"}
	e := sim.New(sim.Options{CapacityTokens: 8 * block, Reply: saying("yes"), Scope: scope})
	var got [][]contextpilot.Event
	cancel := e.Subscribe(func(events ...contextpilot.Event) { got = append(got, events) })
	ask := func(id, name string, blocks int) {
		t.Helper()
		req := numbered(name, blocks)
		req.ID = id
		if _, err := e.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
	}
	event := func(kind contextpilot.EventKind, id string, tokens, output int) contextpilot.Event {
		return contextpilot.Event{Kind: kind, Scope: scope, Request: id, Tokens: tokens, Output: output}
	}
	served := func(id string, blocks, cached int) contextpilot.Event { // of a prompt that ends with one token more
		ev := event(contextpilot.Served, id, cached*block, 1)
		ev.CachedKnown, ev.Prompt = true, blocks*block+1
		return ev
	}
	bypassed := func(id string, blocks int) contextpilot.Event {
		ev := served(id, blocks, 0)
		ev.CachedKnown = false
		return ev
	}
	shrunk := func(id string, tokens int) contextpilot.Event { return event(contextpilot.Shrunk, id, tokens, 0) }
	gone := func(id string) contextpilot.Event { return event(contextpilot.Gone, id, 0, 0) }

	steps := []struct {
		name string
		do   func()
		want [][]contextpilot.Event
	}{
		{"first", func() { ask("a", "a", 4) }, [][]contextpilot.Event{{served("a", 4, 0)}}},
		{"the same start", func() { ask("a2", "a", 2) }, [][]contextpilot.Event{{served("a2", 2, 2)}}},
		// Four blocks are free, five are needed: the last of a goes; a2 keeps its two.
		{"pushes out one block", func() { ask("b", "b", 4) }, [][]contextpilot.Event{{shrunk("a", 3*block)}, {served("b", 4, 0)}}},
		{"pushes out the rest of a", func() { ask("c", "c", 3) }, [][]contextpilot.Event{{gone("a"), gone("a2")}, {served("c", 3, 0)}}},
		{"too large", func() { ask("big", "big", 9) }, [][]contextpilot.Event{{bypassed("big", 9), gone("big")}}},
		{"shorter than a block", func() { ask("tiny", "t", 0) }, [][]contextpilot.Event{{served("tiny", 0, 0)}}},
		{"Reset", e.Reset, [][]contextpilot.Event{{event(contextpilot.Cleared, "", 0, 0)}}},
		{"after Reset", func() { ask("b", "b", 7) }, [][]contextpilot.Event{{served("b", 7, 0)}}},
		{"no longer subscribed", func() { cancel(); ask("d", "d", 7) }, nil},
	}
	for _, s := range steps {
		got = nil
		s.do()
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", s.name, diff)
		}
	}
}

func TestResetWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := sim.New(sim.Options{Reply: saying("yes")})
		var got []string
		e.Subscribe(func(events ...contextpilot.Event) {
			for _, v := range events {
				got = append(got, v.Kind.String()+" "+v.Request)
			}
		})
		let := make(chan struct{})
		req := numbered("a", 2)
		req.ID = "a"
		done := hold(t.Context(), e, req, let)
		synctest.Wait()
		e.Reset()
		close(let)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"cleared ", "served a", "gone a"}, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestRememberBoundsMemory: with a start that all prompts share always resident, no request is ever gone by itself.
func TestRememberBoundsMemory(t *testing.T) {
	e := sim.New(sim.Options{CapacityTokens: 6 * block, Reply: saying("yes"), Remember: 3})
	var gone []string
	e.Subscribe(func(events ...contextpilot.Event) {
		for _, v := range events {
			if v.Kind == contextpilot.Gone {
				gone = append(gone, v.Request)
			}
		}
	})
	shared := numbered("sys", 2).Messages[0]
	for i := range 10 {
		own := numbered(fmt.Sprintf("u%d", i), 2).Messages[0]
		req := engines.Request{ID: fmt.Sprint(i), Messages: []engines.Message{shared, own}}
		if _, err := e.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5", "6"}, gone); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
	if s := e.Stats(); s.Followed != 3 {
		t.Errorf("%d requests are followed, want 3", s.Followed)
	}
}

// TestConcurrent lets many requests fight for a small cache. Afterwards nothing is pinned, every request was Served
// once, before it shrank, and what subscribers know is never more than what is resident.
func TestConcurrent(t *testing.T) {
	const workers, each, capacity = 8, 150, 24
	e := sim.New(sim.Options{CapacityTokens: capacity * block})
	var mu sync.Mutex
	left := map[string]int{}
	prompts := map[string]engines.Request{}
	served := 0
	e.Subscribe(func(events ...contextpilot.Event) {
		mu.Lock()
		defer mu.Unlock()
		for _, v := range events {
			switch before, known := left[v.Request]; v.Kind {
			case contextpilot.Served:
				served++
				if known {
					t.Errorf("%s was served twice", v.Request)
				}
				left[v.Request] = 1 << 30
			case contextpilot.Shrunk:
				if !known || v.Tokens >= before {
					t.Errorf("%s shrank from %d to %d tokens", v.Request, before, v.Tokens)
				}
				left[v.Request] = v.Tokens
			case contextpilot.Gone:
				left[v.Request] = 0
			}
		}
	})
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range each {
				var req engines.Request
				req.ID = fmt.Sprintf("%d/%d", w, i)
				for range 1 + rnd.IntN(3) {
					req.Messages = append(req.Messages, numbered(fmt.Sprint(rnd.IntN(5)), rnd.IntN(6)).Messages[0])
				}
				mu.Lock()
				prompts[req.ID] = req
				mu.Unlock()
				if _, err := e.Generate(t.Context(), req, func(string) error { return nil }); err != nil {
					t.Error(err)
				}
				if rnd.IntN(40) == 0 {
					e.Stats()
				}
			}
		})
	}
	wait.Wait()
	s := e.Stats()
	if s.Running != 0 || s.Waiting != 0 || s.Requests != workers*each || served != workers*each || s.ResidentBlocks > capacity {
		t.Errorf("%d served, %+v", served, s)
	}
	if err := e.CheckIdle(); err != nil {
		t.Error(err)
	}
	for id, tokens := range left {
		req := prompts[id]
		req.Messages = slices.Concat(req.Messages, []engines.Message{{Content: "more"}}) // so that the last block may be read
		if truth := e.Resident(req); tokens < 1<<30 && truth < tokens {
			t.Errorf("%s: %d tokens are resident, subscribers know of %d", id, truth, tokens)
		}
	}
	if s.EvictedBlocks == 0 || s.HitTokens == 0 {
		t.Errorf("%+v: nothing was evicted or nothing was shared, so this tested nothing", s)
	}
}
