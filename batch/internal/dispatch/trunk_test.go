package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// words makes a text of blocks of 16 tokens each, so that the simulator's blocks are those of the text.
func words(path ...int) string {
	var b strings.Builder
	for depth, x := range path {
		for w := range 16 {
			fmt.Fprintf(&b, "w%dx%dx%d ", depth, x, w)
		}
	}
	return b.String()
}

// grow draws the leaves of a tree of blocks, in depth-first order.
func grow(t *rapid.T, path []int, depth int) []string {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		return []string{words(path...)}
	}
	var out []string
	for i := range rapid.IntRange(1, 4).Draw(t, "children") {
		out = append(out, grow(t, append(slices.Clone(path), i), depth-1)...)
	}
	return out
}

// slow is a simulator whose requests take time: what a prompt finds in the cache is decided when it comes, and it is in the cache itself
// after a second.
type slow struct {
	*sim.Engine
	computed *atomic.Int64 // tokens
}

func newSlow() slow { return slow{sim.New(sim.Options{}), new(atomic.Int64)} }

func (s slow) Generate(ctx context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	cached := s.Resident(req)
	time.Sleep(time.Second)
	r, err := s.Engine.Generate(ctx, req, onText)
	s.computed.Add(int64(r.Usage.PromptTokens - cached))
	time.Sleep(2 * time.Second)
	return r, err
}

// TestComputesAsMuchAsOneAfterTheOther: with any concurrency, a simulated engine computes the tokens that it computes when the calls are
// sent one after the other; without the rule it computes more.
func TestComputesAsMuchAsOneAfterTheOther(t *testing.T) {
	more := 0
	rapid.Check(t, func(rt *rapid.T) {
		texts := grow(rt, []int{0}, 4)
		concurrency := rapid.IntRange(1, 40).Draw(rt, "concurrency")
		one, beside, careless := sim.New(sim.Options{}), newSlow(), newSlow()
		for _, c := range calls(texts...) {
			if _, err := one.Generate(t.Context(), c.Request, nil); err != nil {
				rt.Fatal(err)
			}
		}
		run := func(e engines.Engine, shared int) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t)
				d := newDispatcher(t, dispatch.Config{Concurrency: concurrency, MinShared: shared}, e)
				if err := d.Run(t.Context(), calls(texts...), s.add); err != nil || s.len() != len(texts) || len(s.failed()) > 0 {
					t.Errorf("%v, %d answers of %d, failures %v", err, s.len(), len(texts), s.failed())
				}
			})
		}
		run(beside, 1)
		run(careless, -1)
		want := int64(one.Stats().PromptTokens - one.Stats().HitTokens)
		if got := beside.computed.Load(); got != want {
			rt.Fatalf("%d tokens computed, want %d", got, want)
		}
		if careless.computed.Load() > want {
			more++
		}
	})
	if more == 0 {
		t.Error("the rule changes nothing")
	}
}

// TestRounds: what waits for nothing is sent at once, and what waits, as soon as it may.
func TestRounds(t *testing.T) {
	for name, c := range map[string]struct {
		texts  []string
		rounds int
	}{
		"nothing in common":     {[]string{words(1), words(2), words(3)}, 1},
		"one trunk":             {[]string{words(0, 1), words(0, 2), words(0, 3), words(0, 4)}, 2},
		"two trunks":            {[]string{words(0, 1), words(0, 2), words(1, 1), words(1, 2)}, 2},
		"a branch of a trunk":   {[]string{words(0, 1), words(0, 2, 1), words(0, 2, 2), words(0, 3)}, 2},
		"two branches":          {[]string{words(0, 1, 1), words(0, 1, 2), words(0, 2, 1), words(0, 2, 2)}, 3},
		"the same text":         {[]string{words(0), words(0), words(0)}, 2},
		"one goes on":           {[]string{words(0), words(0, 1), words(0, 1, 2)}, 2},
		"no depth-first order":  {[]string{words(0, 1), words(1, 1), words(0, 2), words(1, 2)}, 2},
		"a comb":                {[]string{words(0, 1), words(0, 0, 1), words(0, 0, 0, 1), words(0, 0, 0, 0)}, 2},
		"a difference too late": {[]string{words(0) + "a", words(0) + "b"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				f := &fake{script: func(ctx context.Context, req engines.Request, _ int, piece func()) (engines.Response, error) {
					_ = wait(ctx, time.Second)
					piece()
					_ = wait(ctx, time.Minute)
					return answer(req), nil
				}}
				s := newStore(t)
				if err := newDispatcher(t, dispatch.Config{}, f).Run(t.Context(), calls(c.texts...), s.add); err != nil {
					t.Fatal(err)
				}
				all := f.since(began)
				if rounds := slices.Compact(slices.Clone(all)); len(rounds) != c.rounds ||
					all[len(all)-1] != time.Duration(c.rounds-1)*time.Second || s.len() != len(c.texts) {
					t.Errorf("calls began at %v, want %d rounds of a second", all, c.rounds)
				}
			})
		})
	}
}

// TestLongAnswersFirst: of calls that may begin, those with the longest answers do.
func TestLongAnswersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := numbered(4)
		for i, tokens := range []int{10, 500, 20, 300} {
			all[i].Request.MaxTokens = tokens
		}
		f := takes(time.Second)
		if err := newDispatcher(t, dispatch.Config{Concurrency: 2}, f).Run(t.Context(), all, newStore(t).add); err != nil {
			t.Fatal(err)
		}
		got := f.texts()
		slices.Sort(got[:2]) // they begin together
		slices.Sort(got[2:])
		if got := strings.Join(got, ", "); got != "1: question, 3: question, 0: question, 2: question" {
			t.Errorf("order %s", got)
		}
	})
}

// TestOneAtATime: with one call in flight the order of the calls is kept, because an engine may have room for one prompt only.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := strings.Repeat("x", 200)
		texts := []string{"a", "b longer", shared + "1", shared + "2", shared + "2" + shared + "3", "c"}
		f := takes(time.Second)
		if err := newDispatcher(t, dispatch.Config{Concurrency: 1}, f).Run(t.Context(), calls(texts...), newStore(t).add); err != nil {
			t.Fatal(err)
		}
		if got := f.texts(); !slices.Equal(got, texts) {
			t.Errorf("order %q", got)
		}
	})
}

// TestFailedTrunk: a call that was to lay a prefix down and is refused gives the place to another, and its prefix does not count.
func TestFailedTrunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &fake{script: func(ctx context.Context, req engines.Request, n int, piece func()) (engines.Response, error) {
			_ = wait(ctx, time.Second)
			if n == 0 {
				return engines.Response{}, fmt.Errorf("too odd: %w", engines.ErrRefused)
			}
			piece()
			_ = wait(ctx, time.Minute)
			return answer(req), nil
		}}
		s := newStore(t)
		texts := []string{words(0, 1), words(0, 2), words(0, 3)}
		if err := newDispatcher(t, dispatch.Config{}, f).Run(t.Context(), calls(texts...), s.add); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{0, time.Second, 2 * time.Second}; !slices.Equal(f.since(began), want) {
			t.Errorf("calls began at %v, want %v", f.since(began), want)
		}
		if failed := s.failed(); s.len() != 3 || len(failed) != 1 || failed[0].Code != dispatch.CodeRefused {
			t.Errorf("%d answers, failures %+v", s.len(), failed)
		}
	})
}
