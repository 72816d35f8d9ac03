package contextpilot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

func TestPolicyOrders(t *testing.T) {
	for _, c := range []struct {
		policy string
		before []string // requests that were planned, blocks separated by spaces
		in     string
		want   string
	}{
		{"retrieval", []string{"b a"}, "c a b", "c a b"},
		{"sorted", nil, "b 9 a 10 B", "10 9 B a b"},
		{"sorted", nil, "é z", "z é"},
		{"frequency", nil, "c b a", "a b c"},
		{"frequency", []string{"x c", "c b", "x"}, "a b c x", "c x b a"},
		{"recency", nil, "c b a", "c b a"},
		{"recency", []string{"x y", "b", "a y"}, "n x b a", "a b x n"},
		{"recency", []string{"x y"}, "y x n", "y x n"},
		{"knowledge-tree", []string{"a b c", "d"}, "c d b a", "d c b a"},
		{"knowledge-tree", []string{"a b c", "a c"}, "c b a", "a c b"},
		{"paper", []string{"2 1 3"}, "3 4 2", "2 3 4"},
		{"paper", nil, "3 4 2", "3 4 2"},
	} {
		t.Run(fmt.Sprintf("%s of %s after %v", c.policy, c.in, c.before), func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{Policy: c.policy})
			for _, b := range c.before {
				p.Plan(contextpilot.Request{Blocks: blocks(strings.Fields(b)...)})
			}
			equal(t, "order", c.want, sent(p.Plan(contextpilot.Request{ID: "r", Blocks: blocks(strings.Fields(c.in)...)})))
		})
	}
}

// The docs of a shared prefix stand in one order: numbers first, by value, then all others by bytes.
func TestSharedPrefixOrder(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"10 2 100", "2 10 100"},
		{"b a10 a2", "a10 a2 b"},
		{"02 10 1", "1 10 02"}, // 02 is no number
		{"9 10 1x", "9 10 1x"}, // whatever their order in the request
		{"10 1x 9", "9 10 1x"},
		{"1x 9 10", "9 10 1x"},
	} {
		p := newPilot(t, contextpilot.Config{Policy: "paper"})
		ids := strings.Fields(c.in)
		b, err := p.PlanBatch(context.Background(), []contextpilot.Request{
			{Blocks: blocks(append(slices.Clone(ids), "end1")...)}, {Blocks: blocks(append(slices.Clone(ids), "end2")...)},
		})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, c.in, c.want+" end1", sent(b.Plans[0]))
	}
}

// Requests of one session keep their order, and only for that a request leaves its group.
func TestBatchKeepsTurns(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     []string // session, blocks
		groups [][]int
	}{
		{"in order already", []string{"s a b", "- a c", "s x", "- x y"}, [][]int{{0, 1}, {2, 3}}},
		{"behind the earlier one", []string{"- a", "s x", "s a b", "- a c"}, [][]int{{0, 3}, {1, 2}}},
		{"several wait", []string{"- a", "s x", "s a b", "s a c"}, [][]int{{0}, {1, 2, 3}}},
		{"two sessions", []string{"- a", "s x", "t y", "t a b", "s a c"}, [][]int{{0}, {1, 4}, {2, 3}}},
	} {
		var reqs []contextpilot.Request
		for _, in := range c.in {
			f := strings.Fields(in)
			reqs = append(reqs, contextpilot.Request{Session: strings.Trim(f[0], "-"), Blocks: blocks(f[1:]...)})
		}
		b, err := newPilot(t, contextpilot.Config{Policy: "retrieval"}).PlanBatch(context.Background(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, c.name, c.groups, b.Groups)
		equal(t, c.name+": order", slices.Concat(c.groups...), b.Order)
	}
}

func TestBadBatch(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	for _, c := range []struct {
		reqs []contextpilot.Request
		want string
	}{
		{[]contextpilot.Request{{}, {Scope: contextpilot.Scope{Model: "m"}}}, "request 1: Scope"},
		{[]contextpilot.Request{{ID: "x"}, {ID: "y"}, {ID: "x"}}, `request 2: ID "x" is that of request 0`},
	} {
		_, err := p.PlanBatch(context.Background(), c.reqs)
		if !errors.Is(err, contextpilot.ErrBadRequest) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	equal(t, "recorded", int64(0), p.Stats().LiveRequests)
}

func TestBudget(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "retrieval"})
	bs := []contextpilot.Block{
		{ID: "a", Tokens: 50},
		{ID: "b", Tokens: 60},
		{ID: "c", Tokens: 50},
		{ID: "d", Text: "twelve bytes"},
		{ID: "e", Tokens: 1},
	}
	for _, c := range []struct {
		budget int
		want   string
	}{{0, "a b c d e"}, {-1, "a b c d e"}, {49, "d e"}, {50, "a"}, {99, "a d e"}, {100, "a c"}, {103, "a c d"}, {104, "a c d e"}, {
		164,
		"a b c d e",
	}} {
		got := p.Plan(contextpilot.Request{Blocks: bs, Budget: c.budget})
		equal(t, fmt.Sprint("budget ", c.budget), c.want, sent(got))
		equal(t, fmt.Sprint("budget ", c.budget, ": left out"), len(bs)-len(got.Items), len(got.LeftOut))
	}
}

func TestRandomPolicy(t *testing.T) {
	plan := func(id string) string {
		p := newPilot(t, contextpilot.Config{Policy: "random"})
		return sent(p.Plan(contextpilot.Request{ID: id, Blocks: blocks("a", "b", "c", "d", "e", "f")}))
	}
	orders := map[string]bool{}
	for i := range 20 {
		id := fmt.Sprint(i)
		equal(t, "the same request", plan(id), plan(id))
		orders[plan(id)] = true
	}
	if len(orders) < 18 {
		t.Errorf("20 requests have %d orders", len(orders))
	}
}

// The index is what learns: after its requests are gone, contextpilot and knowledge-tree match nothing any more.
func TestPoliciesFollowTheCache(t *testing.T) {
	for _, policy := range []string{"paper", "knowledge-tree"} {
		p := newPilot(t, contextpilot.Config{Policy: policy})
		p.Plan(contextpilot.Request{ID: "1", Blocks: blocks("a", "b", "c")})
		probe := func(what, want string) {
			t.Helper()
			got := p.Plan(contextpilot.Request{ID: "probe", Blocks: blocks("d", "b", "a")})
			equal(t, policy+": "+what, want, sent(got))
			p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "probe"})
		}
		probe("live", "a b d")
		p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "1"})
		probe("gone", "d b a")
		p.Plan(contextpilot.Request{ID: "2", Blocks: blocks("a", "b", "c")})
		p.Observe(contextpilot.Event{Kind: contextpilot.Cleared})
		probe("cleared", "d b a")
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	}
}

// asked records the calls of a policy, in words.
type asked struct{ log []string }

func (a *asked) Name() string { return "asked" }

func (a *asked) Order(dst []int, q contextpilot.Query) []int {
	a.log = append(a.log, fmt.Sprintf("order %s %s continued=%v depth=%d", q.Request, ids(q), q.Continued(), depth(q)))
	for i := range q.Blocks {
		dst = append(dst, i)
	}
	slices.Reverse(dst)
	return dst
}

func (a *asked) Sent(request string, q contextpilot.Query, order []int) {
	a.log = append(a.log, fmt.Sprint("sent ", request, " ", ids(q), " ", order))
}
func (a *asked) Gone(request string) { a.log = append(a.log, "gone "+request) }

func ids(q contextpilot.Query) (out []string) {
	for _, b := range q.Blocks {
		out = append(out, b.ID)
	}
	return out
}

func depth(q contextpilot.Query) int {
	if q.From == contextpilot.NoNode {
		return -1
	}
	return q.Tree.Tokens(q.From)
}

func TestPolicyIsTold(t *testing.T) {
	a := &asked{}
	p := newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy { return a }})
	one := p.Plan(contextpilot.Request{ID: "1", Session: "s", Blocks: blocks("a", "b", "a")})
	p.Plan(contextpilot.Request{ID: "2", Session: "s", Blocks: blocks("b", "c", "d"), Prior: []string{one.Prompt("q")}, Behind: one.End})
	p.Plan(contextpilot.Request{ID: "3", Session: "t", Blocks: blocks("c"), Prior: []string{"hello"}})
	p.Plan(contextpilot.Request{ID: "3", Session: "t", Blocks: blocks("e")})
	p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "1"}, contextpilot.Event{Kind: contextpilot.Gone, Request: "1"})
	equal(t, "calls", []string{
		"order 1 [a b] continued=false depth=0", "sent 1 [a b] [1 0]",
		"order 2 [c d] continued=true depth=64", "sent 2 [c d] [1 0]", // behind b and a
		"order 3 [c] continued=true depth=-1", "sent 3 [c] [0]",
		"gone 3", "order 3 [e] continued=false depth=0", "sent 3 [e] [0]",
		"gone 1",
	}, a.log)
}

// Batches of any policy: each request gets a permutation of its blocks, and a later batch can share with it.
func TestBatchOfEveryPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom(contextpilot.PolicyNames()).Draw(t, "policy")
		p, err := contextpilot.New(contextpilot.Config{Policy: policy, BlockSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		block := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g"})
		var reqs []contextpilot.Request
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			reqs = append(reqs, contextpilot.Request{Blocks: blocks(rapid.SliceOfNDistinct(block, 0, 4, rapid.ID).Draw(t, "blocks")...)})
		}
		b, err := p.PlanBatch(context.Background(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		check := newChecker(contextpilot.Config{BlockSize: 1})
		for i, plan := range b.Plans {
			if err := check.check(reqs[i], plan); err != nil {
				t.Fatal(err)
			}
		}
		for i, r := range reqs { // planned again one by one, in the order that was sent: everything is there
			for k, it := range b.Plans[i].Items {
				r.Blocks[k] = blocks(it.Label)[0]
			}
		}
		if policy == "knowledge-tree" || policy == "retrieval" {
			for _, r := range reqs {
				if got := p.Plan(r); got.Prefix.Blocks != len(r.Blocks) && policy == "retrieval" {
					t.Fatalf("%d of %d blocks are expected: %s", got.Prefix.Blocks, len(r.Blocks), got.Explain())
				}
			}
		}
	})
}

// A served request that is planned again leaves the index between its order and its insertion; a policy must not
// insert it at a place that went with it.
func TestPlannedAgain(t *testing.T) {
	for _, policy := range contextpilot.PolicyNames() {
		p := newPilot(t, contextpilot.Config{Policy: policy, MaxRequests: 1})
		for range 3 {
			p.Plan(contextpilot.Request{ID: "r", Blocks: blocks("b", "c")})
			p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "r"})
		}
		p.Plan(contextpilot.Request{ID: "other"})
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", policy, err)
		}
	}
}
