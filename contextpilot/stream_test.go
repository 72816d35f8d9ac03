package contextpilot_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

func streaming(t *testing.T, partition int) *contextpilot.Pilot {
	return newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy {
		return contextpilot.NewBest(contextpilot.BestOptions{Partition: partition})
	}})
}

func TestPlanStream(t *testing.T) {
	sets := draw(rand.New(rand.NewPCG(5, 5)), 300, 6, 90)
	at := func(i int) contextpilot.Request { return contextpilot.Request{Blocks: sets[i]} }
	saved := func(plans []contextpilot.Plan, order []int) (tokens int) {
		for _, i := range order {
			tokens += plans[i].Prefix.Tokens
		}
		return tokens
	}
	parts, tokens := 0, 0
	var seen []int
	for part, err := range streaming(t, 60).PlanStream(context.Background(), len(sets), at) {
		if err != nil {
			t.Fatal(err)
		}
		parts++
		seen = append(seen, part.Requests...)
		tokens += saved(part.Plans, part.Order)
		for i, plan := range part.Plans {
			if plan.Fault != nil || len(plan.Items) != 6 || plan.Block(0).ID != sets[part.Requests[i]][0].ID {
				t.Fatalf("request %d: %s", part.Requests[i], plan.Explain())
			}
		}
		if len(part.Order) != len(part.Requests) || !slices.Equal(slices.Concat(part.Groups...), part.Order) {
			t.Fatalf("order %v, groups %v of %d requests", part.Order, part.Groups, len(part.Requests))
		}
	}
	slices.Sort(seen)
	for i := range sets {
		if len(seen) != len(sets) || seen[i] != i {
			t.Fatalf("requests planned: %v", seen)
		}
	}
	if parts < 2 {
		t.Errorf("%d parts", parts)
	}
	reqs := make([]contextpilot.Request, len(sets))
	for i := range sets {
		reqs[i] = at(i)
	}
	whole, err := streaming(t, 0).PlanBatch(context.Background(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	if w := saved(whole.Plans, whole.Order); tokens < w*9/10 {
		t.Errorf("parts expect %d tokens in the cache, the whole batch %d", tokens, w)
	}
}

func TestPlanStreamRefuses(t *testing.T) {
	first := func(p *contextpilot.Pilot, ctx context.Context, at func(int) contextpilot.Request) error {
		for _, err := range p.PlanStream(ctx, 3, at) {
			return err
		}
		return nil
	}
	plain := func(int) contextpilot.Request { return contextpilot.Request{Blocks: blocks("a", "b")} }
	if err := first(newPilot(t, contextpilot.Config{Policy: "sorted"}), context.Background(), plain); !errors.Is(err, contextpilot.ErrBadRequest) || !strings.Contains(err.Error(), "sorted") {
		t.Errorf("a policy that plans no streams: %v", err)
	}
	session := func(i int) contextpilot.Request {
		return contextpilot.Request{Session: strings.Repeat("s", i), Blocks: blocks("a")}
	}
	if err := first(streaming(t, 2), context.Background(), session); !errors.Is(err, contextpilot.ErrBadRequest) || !strings.Contains(err.Error(), "request 1") {
		t.Errorf("a session: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := first(streaming(t, 2), ctx, plain); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, err := range streaming(t, 1).PlanStream(context.Background(), 3, plain) {
		if err != nil {
			t.Error(err)
		}
		break // nobody is left behind
	}
}

// What limits leave of the policy's orders decides which requests run next to each other, as in PlanBatch; so it does for
// requests whose order is fixed.
func TestPlanStreamOfCorrectedOrders(t *testing.T) {
	sets := [][]contextpilot.Block{blocks("x", "1"), blocks("y", "2"), blocks("x", "3"), blocks("y", "1")}
	for name, c := range map[string]struct {
		limits contextpilot.Limits
		fixed  bool
	}{
		"pinned":           {contextpilot.Limits{Pin: 1}, false},
		"fixed":            {contextpilot.Limits{}, true},
		"pinned and fixed": {contextpilot.Limits{Pin: 1}, true},
	} {
		at := func(i int) contextpilot.Request { return contextpilot.Request{Blocks: sets[i], Fixed: c.fixed} }
		for part, err := range newPilot(t, contextpilot.Config{Limits: c.limits}).PlanStream(t.Context(), len(sets), at) {
			if err != nil {
				t.Fatal(err)
			}
			equal(t, name+": order", []int{0, 2, 1, 3}, part.Order)
			equal(t, name+": groups", [][]int{{0, 2}, {1, 3}}, part.Groups)
			equal(t, name+": the third is sent", "x 3", sent(part.Plans[2]))
			equal(t, name+": and finds a block", 1, part.Plans[2].Prefix.Blocks)
		}
	}
}

// parts is a policy that yields these parts of a stream, as one of a user's might.
type parts struct {
	contextpilot.Policy
	parts []contextpilot.StreamPart
	then  func() // behind them
}

func (p parts) OrderStream(context.Context, int, func(int) contextpilot.Query) iter.Seq2[contextpilot.StreamPart, error] {
	return func(yield func(contextpilot.StreamPart, error) bool) {
		for _, part := range p.parts {
			if !yield(part, nil) {
				return
			}
		}
		if p.then != nil {
			p.then()
		}
	}
}

// A policy that panics because nobody wants more of it, and requests that cannot be made, end no program.
func TestPlanStreamPanics(t *testing.T) {
	bad := stubborn{contextpilot.NewBest(contextpilot.BestOptions{})}
	p := newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy { return bad }})
	for _, err := range p.PlanStream(t.Context(), 2, func(int) contextpilot.Request { return contextpilot.Request{Blocks: blocks("a")} }) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	for _, err := range streaming(t, 2).PlanStream(t.Context(), 2, func(int) contextpilot.Request { panic("no file") }) {
		if !errors.Is(err, contextpilot.ErrFault) || !strings.Contains(err.Error(), "no file") {
			t.Error(err)
		}
	}
}

// stubborn panics when its parts are not wanted.
type stubborn struct{ contextpilot.Policy }

func (stubborn) OrderStream(_ context.Context, n int, _ func(int) contextpilot.Query) iter.Seq2[contextpilot.StreamPart, error] {
	return func(yield func(contextpilot.StreamPart, error) bool) {
		for i := range n {
			if !yield(contextpilot.StreamPart{Requests: []int{i}, Orders: [][]int{{0}}, Schedule: []int{0}, Groups: [][]int{{0}}}, nil) {
				panic("more is to come")
			}
		}
	}
}

// What a user's policy gets wrong is an error: no request is lost or planned twice without a word.
func TestPlanStreamOfFaultyPolicies(t *testing.T) {
	alone := func(i int) contextpilot.StreamPart {
		return contextpilot.StreamPart{Requests: []int{i}, Orders: [][]int{{1, 0}}, Schedule: []int{0}, Groups: [][]int{{0}}}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context //nolint:containedctx // of a call
		policy parts
		plans  int
		want   error
		names  string
	}{
		"all":       {t.Context(), parts{parts: []contextpilot.StreamPart{alone(1), alone(0)}}, 2, nil, ""},
		"left out":  {t.Context(), parts{parts: []contextpilot.StreamPart{alone(1)}}, 1, contextpilot.ErrFault, "request 0"},
		"twice":     {t.Context(), parts{parts: []contextpilot.StreamPart{alone(1), alone(1)}}, 1, contextpilot.ErrFault, "request 1"},
		"unknown":   {t.Context(), parts{parts: []contextpilot.StreamPart{alone(2)}}, 0, contextpilot.ErrFault, "request 2"},
		"negative":  {t.Context(), parts{parts: []contextpilot.StreamPart{alone(-1)}}, 0, contextpilot.ErrFault, "request -1"},
		"no orders": {t.Context(), parts{parts: []contextpilot.StreamPart{{Requests: []int{0}, Schedule: []int{0}, Groups: [][]int{{0}}}}}, 0, contextpilot.ErrFault, "0 orders"},
		"panic":     {t.Context(), parts{parts: []contextpilot.StreamPart{alone(0)}, then: func() { panic("lost count") }}, 1, contextpilot.ErrFault, "lost count"},
		"cancelled": {cancelled, parts{}, 0, context.Canceled, ""},
	} {
		c.policy.Policy = contextpilot.NewBest(contextpilot.BestOptions{})
		p := newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy { return c.policy }})
		plans, failed := 0, error(nil)
		for part, err := range p.PlanStream(c.ctx, 2, func(int) contextpilot.Request { return contextpilot.Request{Blocks: blocks("a", "b")} }) {
			plans += len(part.Plans)
			failed = err
		}
		if plans != c.plans || !errors.Is(failed, c.want) || c.want != nil && !strings.Contains(failed.Error(), c.names) {
			t.Errorf("%s: %d plans, %v; want %d and %v naming %q", name, plans, failed, c.plans, c.want, c.names)
		}
	}
}
