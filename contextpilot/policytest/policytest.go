package policytest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Run checks that orders are permutations of what was retrieved, in all situations a pilot brings about (no
// blocks, one, a thousand, conversations, requests that leave the index); that they depend on nothing but what
// the calls of the policy; and the same for batches. newPolicy is called several times.
func Run(t *testing.T, newPolicy func() contextpilot.Policy) {
	t.Run("named", func(t *testing.T) {
		if newPolicy().Name() == "" {
			t.Error("Name is empty")
		}
	})
	t.Run("sizes", func(t *testing.T) { sizes(t, newPolicy) })
	t.Run("sequence", func(t *testing.T) { sequence(t, newPolicy) })
	t.Run("batch", func(t *testing.T) { batch(t, newPolicy) })
}

// pilot gives a policy everything that can happen to it: few requests stay live, and little capacity.
func pilot(t *testing.T, policy func() contextpilot.Policy) *contextpilot.Pilot {
	t.Helper()
	p, err := contextpilot.New(contextpilot.Config{NewPolicy: policy, MaxRequests: 40, Capacity: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func blocks(ids ...int) []contextpilot.Block {
	out := make([]contextpilot.Block, len(ids))
	for i, id := range ids {
		out[i] = contextpilot.Block{
			ID: fmt.Sprint("b", id), Text: fmt.Sprintf("Text of block %d.", id), Tokens: 10 + id%90,
			Score: 1 / float64(i+1),
		}
	}
	return out
}

// whole fails the test if the plan has a fault or does not hold each block once.
func whole(t *testing.T, p *contextpilot.Plan) {
	t.Helper()
	if p.Fault != nil {
		t.Fatalf("request %s of %d blocks: %v", p.RequestID, p.Len(), p.Fault)
	}
	seen := make([]int, p.Len())
	for _, it := range p.Items {
		seen[it.Index]++
	}
	for _, l := range p.LeftOut {
		seen[l.Index]++
	}
	if i := slices.IndexFunc(seen, func(n int) bool { return n != 1 }); i >= 0 {
		t.Fatalf("request %s: block %d of %d is in the plan %d times", p.RequestID, i, p.Len(), seen[i])
	}
}

func sizes(t *testing.T, policy func() contextpilot.Policy) {
	p := pilot(t, policy)
	for round := range 2 { // the second time, all of it has been seen
		for _, n := range []int{0, 1, 2, 1000} {
			ids := make([]int, n)
			for i := range ids {
				ids[i] = i
			}
			plan := p.Plan(contextpilot.Request{ID: fmt.Sprintf("%d/%d", round, n), Blocks: blocks(ids...)})
			whole(t, &plan)
		}
	}
}

// sequence lives through conversations, evictions and failures, with two pilots that must agree.
func sequence(t *testing.T, policy func() contextpilot.Policy) {
	rnd := rand.New(rand.NewPCG(1, 2))
	twins := []*contextpilot.Pilot{pilot(t, policy), pilot(t, policy)}
	prior, at := map[string][]string{}, map[string]contextpilot.Position{}
	for i := range 400 {
		session := ""
		if rnd.IntN(2) == 0 {
			session = fmt.Sprint("s", rnd.IntN(6))
		}
		req := contextpilot.Request{
			ID: fmt.Sprint(i), Session: session, Blocks: blocks(draw(rnd, 12)...), Prior: prior[session],
			Behind: at[session],
		}
		plans := [2]contextpilot.Plan{}
		for j, p := range twins {
			plans[j] = p.Plan(req)
			whole(t, &plans[j])
		}
		if a, b := plans[0].Explain(), plans[1].Explain(); a != b {
			t.Fatalf("two pilots that saw the same plan differently:\n%s\n%s", a, b)
		}
		ev := contextpilot.Event{Kind: contextpilot.EventKind(1 + rnd.IntN(3)), Request: fmt.Sprint(rnd.IntN(i + 2)), Tokens: rnd.IntN(300)}
		if rnd.IntN(100) == 0 {
			ev.Kind = contextpilot.Cleared
		}
		for _, p := range twins {
			p.Observe(ev)
		}
		if session != "" {
			prior[session] = append(prior[session], plans[0].Prompt("And then?"), "Nothing.")
			at[session] = plans[0].End
		}
	}
	if n := twins[0].Stats().Faults(); n != 0 {
		t.Errorf("%d faults", n)
	}
}

// draw picks up to n different blocks, low numbers more often.
func draw(rnd *rand.Rand, n int) []int {
	var ids []int
	for range rnd.IntN(n + 1) {
		if id := int(200 * rnd.Float64() * rnd.Float64()); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func batch(t *testing.T, policy func() contextpilot.Policy) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 60} {
		reqs := make([]contextpilot.Request, n)
		for i := range reqs {
			reqs[i] = contextpilot.Request{ID: fmt.Sprint(i), Blocks: blocks(draw(rnd, 10)...)}
		}
		b, err := pilot(t, policy).PlanBatch(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Plans {
			whole(t, &b.Plans[i])
		}
		order := slices.Sorted(slices.Values(b.Order))
		for i, j := range order {
			if i != j {
				t.Fatalf("execution order %v of %d requests", b.Order, n)
			}
		}
		if len(order) != n || !slices.Equal(slices.Concat(b.Groups...), b.Order) {
			t.Fatalf("%d of %d requests in the execution order, groups %v", len(order), n, b.Groups)
		}
	}
}
