package contextpilot_test

import (
	"context"
	"errors"
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
