package contextpilot_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// big makes blocks of 100 tokens, so that every note is cheaper than a block.
func big(ids ...string) []contextpilot.Block {
	out := blocks(ids...)
	for i := range out {
		out[i].Tokens = 100
	}
	return out
}

// draw makes requests of k of n blocks around topics, with shuffled ranks and uneven lengths.
func draw(r *rand.Rand, requests, k, n int) (out [][]contextpilot.Block) {
	for range requests {
		topic := r.IntN(n)
		taken := map[int]bool{}
		var set []contextpilot.Block
		for len(set) < k {
			d := (topic + r.IntN(k+k/2+1)) % n
			if !taken[d] {
				taken[d] = true
				set = append(set, contextpilot.Block{ID: fmt.Sprint("b", d), Text: fmt.Sprint("text of b", d), Tokens: 5 + d*37%90})
			}
		}
		out = append(out, set)
	}
	return out
}

// both asks two policies about the same requests on the index that the first one's orders make.
type both struct {
	contextpilot.Policy
	other  contextpilot.Policy
	report func(q contextpilot.Query, first, second []int)
}

func (b both) Order(dst []int, q contextpilot.Query) []int {
	second := b.other.Order(nil, q)
	at := len(dst)
	dst = b.Policy.Order(dst, q)
	b.report(q, dst[at:], second)
	return dst
}

func (b both) Sent(request string, q contextpilot.Query, order []int) {
	b.Policy.(contextpilot.Learner).Sent(request, q, order)
}
func (b both) Gone(request string) { b.Policy.(contextpilot.Learner).Gone(request) }

// resident returns the tokens of an order's blocks that the index holds.
func resident(q contextpilot.Query, order []int) int {
	n := q.From
	for _, i := range order {
		c, ok := q.Tree.Child(n, q.Blocks[i].Key)
		if !ok {
			break
		}
		n = c
	}
	return q.Tree.Tokens(n)
}

// With the weight of the future at zero the path is the longest that any order can find.
func TestBestFindsWhatTheOracleFinds(t *testing.T) {
	for _, c := range []struct{ k, n int }{{3, 12}, {5, 12}, {8, 20}, {8, 100}} {
		requests := 0
		exact := contextpilot.NewBest(contextpilot.BestOptions{Future: -1, Aging: -1, Visits: 1 << 30})
		oracle, err := contextpilot.NewPolicy("oracle")
		if err != nil {
			t.Fatal(err)
		}
		policy := both{exact, oracle, func(q contextpilot.Query, first, second []int) {
			requests++
			if a, b := resident(q, first), resident(q, second); a != b {
				t.Errorf("k=%d n=%d request %s: %d resident tokens, the oracle finds %d", c.k, c.n, q.Request, a, b)
			}
		}}
		p := newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy { return policy }})
		for _, set := range draw(rand.New(rand.NewPCG(1, uint64(c.k))), 400, c.k, c.n) {
			p.Plan(contextpilot.Request{Blocks: set})
		}
		equal(t, "requests compared", 400, requests)
	}
}

// The oracle against all permutations, literally.
func TestOracleTriesAllOrders(t *testing.T) {
	oracle, err := contextpilot.NewPolicy("oracle")
	if err != nil {
		t.Fatal(err)
	}
	frequency, err := contextpilot.NewPolicy("frequency")
	if err != nil {
		t.Fatal(err)
	}
	policy := both{frequency, oracle, func(q contextpilot.Query, _, found []int) {
		most := 0
		var try func(order []int)
		try = func(order []int) {
			most = max(most, resident(q, order))
			for i := range q.Blocks {
				if !slices.Contains(order, i) {
					try(append(slices.Clone(order), i))
				}
			}
		}
		try(nil)
		if got := resident(q, found); got != most {
			t.Errorf("request %s: the oracle finds %d tokens, some order %d", q.Request, got, most)
		}
	}}
	p := newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy { return policy }})
	for _, set := range draw(rand.New(rand.NewPCG(2, 2)), 60, 5, 12) {
		p.Plan(contextpilot.Request{Blocks: set})
	}
}

// Nothing shared: retrieval order, and not a word about it.
func TestNothingSharedNothingChanged(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	for i := range 200 {
		var names []string
		for j := range 10 {
			names = append(names, fmt.Sprint("r", i, "b", 9-j))
		}
		plan := p.Plan(contextpilot.Request{Blocks: big(names...)})
		if plan.Reordered() || len(notes(plan)) > 0 {
			t.Fatalf("request %d: %s", i, plan.Explain())
		}
	}
}

// A note is added when what the order saves now exceeds what the note costs.
func TestNetGain(t *testing.T) {
	plan := func(tokens int, notes contextpilot.Notes) contextpilot.Plan {
		p := newPilot(t, contextpilot.Config{Policy: "knowledge-tree", Notes: notes, BlockSize: 1})
		var first, second []contextpilot.Block
		for _, id := range []string{"a", "b", "c"} {
			first = append(first, contextpilot.Block{ID: id, Text: id, Tokens: tokens})
		}
		second = append(second, contextpilot.Block{ID: "x", Text: "x", Tokens: 100}, first[1], first[0])
		p.Plan(contextpilot.Request{Blocks: first})
		return p.Plan(contextpilot.Request{Blocks: second})
	}
	const note = "Relevance: [x] > [b] > [a]."
	cost := contextpilot.Estimate{}.Count(note)
	equal(t, "saves as much as it costs", "", h(plan(cost/2, contextpilot.Notes{})))
	equal(t, "saves more", note, h(plan(cost/2+1, contextpilot.Notes{})))
	equal(t, "always", note, h(plan(1, contextpilot.Notes{AlwaysHint: true})))
	equal(t, "never", "", h(plan(1000, contextpilot.Notes{Hint: contextpilot.HintNone, AlwaysHint: true})))
	equal(t, "top", "Relevance: [x] > [b].", h(plan(1000, contextpilot.Notes{Top: 2})))
	equal(t, "within tokens", "Relevance: [x] > [b].", h(plan(1000, contextpilot.Notes{Tokens: cost - 1})))
	equal(t, "one at least", "Relevance: [x].", h(plan(1000, contextpilot.Notes{Tokens: 1})))
	equal(t, "displaced", "Best: [x]", h(plan(1000, contextpilot.Notes{Hint: contextpilot.HintDisplaced, TopOrder: "Best: {order}"})))
	equal(t, "full", strings.ReplaceAll(contextpilot.DefaultOrderNote, "{order}", "[x] > [b] > [a]"), h(plan(1000,
		contextpilot.Notes{Hint: contextpilot.HintFull, Top: 1})))
}

func h(p contextpilot.Plan) string { return p.Hint }

func TestExplainTellsWhy(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Top: contextpilot.TopAnywhere})
	p.Plan(contextpilot.Request{Blocks: big("a", "b", "c")})
	plan := p.Plan(contextpilot.Request{ID: "two", Blocks: big("c", "x", "b", "a")})
	text := plan.Explain()
	for _, want := range []string{
		"request two", "policy best", "1:a", "as retrieved: 0 tokens", "candidates: 4 nodes", "longest resident path has 300 tokens",
		"chosen path: 3 blocks, 300 tokens", "note to the model: Relevance: [c] > [x] > [b].",
	} {
		if !strings.Contains(text, strings.ReplaceAll(want, "1:a", "4:a*")) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// What lies in a slow tier is worth less than what lies in the engine's memory.
func TestTiers(t *testing.T) {
	order := func(cost float64) string {
		p := newPilot(t, contextpilot.Config{LoadCost: map[string]float64{"disk": cost}})
		p.Plan(contextpilot.Request{ID: "far", Blocks: big("a", "b", "c")})
		p.Plan(contextpilot.Request{ID: "near", Blocks: big("d", "e")})
		p.Observe(contextpilot.Event{Kind: contextpilot.Moved, Request: "far", Tier: "disk"})
		return sent(p.Plan(contextpilot.Request{Blocks: big("e", "d", "c", "b", "a")}))
	}
	equal(t, "cheap to load: the longer path", "a b c", order(0.1)[:5])
	equal(t, "dear to load: the nearer one", "d e", order(0.9)[:3])
	equal(t, "a tier nobody named is worth nothing", "d e", func() string {
		p := newPilot(t, contextpilot.Config{})
		p.Plan(contextpilot.Request{ID: "far", Blocks: big("a", "b", "c")})
		p.Plan(contextpilot.Request{ID: "near", Blocks: big("d", "e")})
		p.Observe(contextpilot.Event{Kind: contextpilot.Moved, Request: "far", Tier: "tape"})
		return sent(p.Plan(contextpilot.Request{Blocks: big("e", "d", "c", "b", "a")}))[:3]
	}())
	for name, costs := range map[string]map[string]float64{"negative": {"disk": -0.1}, "above 1": {"disk": 1.1}, "no name": {"": 0.5}} {
		if _, err := contextpilot.New(contextpilot.Config{LoadCost: costs}); err == nil || !strings.Contains(err.Error(), "LoadCost") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestLanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := contextpilot.Batch{}
		sessions := map[int]string{}
		n := rapid.IntRange(0, 40).Draw(t, "requests")
		for i := range n {
			s := rapid.SampledFrom([]string{"", "", "s", "t"}).Draw(t, "session")
			sessions[i] = s
			b.Order = append(b.Order, i)
			b.Plans = append(b.Plans, contextpilot.Plan{Session: s})
		}
		lanes := b.Lanes(rapid.IntRange(-1, 20).Draw(t, "lanes"))
		lane := map[string]int{}
		var all []int
		for l, run := range lanes {
			if !slices.IsSorted(run) {
				t.Fatalf("lane %d is out of order: %v", l, run)
			}
			for _, i := range run {
				if at, ok := lane[sessions[i]]; ok && at != l && sessions[i] != "" {
					t.Fatalf("session %s is in lanes %d and %d", sessions[i], at, l)
				}
				lane[sessions[i]] = l
			}
			all = append(all, run...)
		}
		slices.Sort(all)
		if !slices.Equal(all, b.Order) {
			t.Fatalf("lanes hold %v of %d requests", all, n)
		}
	})
}
