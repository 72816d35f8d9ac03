package engines_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func agents(n int) []contextpilot.Scope {
	out := make([]contextpilot.Scope, n)
	for i := range out {
		out[i] = contextpilot.Scope{Replica: fmt.Sprint("agent ", i)}
	}
	return out
}

// requests makes one for each word, of one document of so many tokens as the word is long.
func requests(list string) []contextpilot.Request {
	var out []contextpilot.Request
	for id := range strings.FieldsSeq(list) {
		out = append(out, contextpilot.Request{HeadTokens: 10, Blocks: []contextpilot.Block{{ID: id, Text: id, Tokens: len(id)}}})
	}
	return out
}

func read(t testing.TB, p *contextpilot.Pilot, scope contextpilot.Scope, list string) {
	t.Helper()
	for _, req := range requests(list) {
		req.Scope = scope
		if plan := p.Plan(req); plan.Fault != nil {
			t.Fatal(plan.Fault)
		}
	}
}

func assign(t testing.TB, p *contextpilot.Pilot, reqs []contextpilot.Request, scopes []contextpilot.Scope) engines.Assignment {
	t.Helper()
	return testkit.Must(engines.Assign(p, reqs, scopes))(t)
}

func exactPilot(t testing.TB) *contextpilot.Pilot {
	t.Helper()
	return testkit.Must(contextpilot.New(contextpilot.Config{BlockSize: 1}))(t)
}

// A document goes to the agent that has read it; where two want the same agent, the longer one stays.
func TestAssign(t *testing.T) {
	p, scopes := exactPilot(t), agents(3)
	read(t, p, scopes[0], "xxxx yyyyyy")
	read(t, p, scopes[1], "zzz")
	read(t, p, scopes[2], "w")
	equal(t, "each where it was", engines.Assignment{To: []int{2, 0, 1}}, assign(t, p, requests("w yyyyyy zzz"), scopes))
	equal(t, "two of one agent's", engines.Assignment{To: []int{2, 0, 1}, Prefill: 4}, assign(t, p, requests("xxxx yyyyyy zzz"), scopes))
	equal(t, "fewer requests than agents, and no agent is warmed up in vain", engines.Assignment{To: []int{1}},
		assign(t, p, requests("zzz"), append(agents(3), contextpilot.Scope{Replica: "new"})))
	equal(t, "no requests", engines.Assignment{To: []int{}}, assign(t, p, nil, scopes))
	equal(t, "plans", int64(4), p.Stats().Plans)
}

func TestAssignErrors(t *testing.T) {
	p := exactPilot(t)
	if _, err := engines.Assign(p, requests("a b c"), agents(2)); err == nil || !strings.Contains(err.Error(), "3 requests to 2 scopes") {
		t.Errorf("got %v", err)
	}
	if _, err := engines.Assign(p, requests("a"), append(agents(2), agents(1)...)); err == nil || !strings.Contains(err.Error(), "agent 0") {
		t.Errorf("got %v", err)
	}
}

// Of a few requests all assignments can be tried. Scopes are of several models and tenants.
func TestAssignIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := contextpilot.New(contextpilot.Config{BlockSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		scopes := agents(rapid.IntRange(1, 6).Draw(t, "agents"))
		word := rapid.Map(rapid.SampledFrom([]int{1, 2, 3, 5, 8, 13, 21, 34}), func(n int) string { return strings.Repeat("x", n) })
		for i := range scopes {
			scopes[i].Model = rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model")
			scopes[i].Tenant = rapid.SampledFrom([]string{"", "t"}).Draw(t, "tenant")
			for _, req := range requests(strings.Join(rapid.SliceOfN(word, 0, 6).Draw(t, "read"), " ")) {
				req.Scope = scopes[i]
				p.Plan(req)
			}
		}
		reqs := requests(strings.Join(rapid.SliceOfN(word, 0, len(scopes)).Draw(t, "documents"), " "))
		left := make([][]int, len(reqs))
		for i, req := range reqs {
			for _, s := range scopes {
				req.Scope = s
				m := p.Match(req)
				left[i] = append(left[i], m.Prompt-m.Tokens)
			}
		}
		got, err := engines.Assign(p, reqs, scopes)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for i, j := range got.To {
			sum += left[i][j]
			if slices.Contains(got.To[:i], j) {
				t.Fatalf("one agent twice: %v", got.To)
			}
		}
		if best := leastOf(left, make([]bool, len(scopes))); len(got.To) != len(reqs) || sum != best || got.Prefill != best {
			t.Fatalf("%+v comes to %d, the best to %d", got, sum, best)
		}
	})
}

// leastOf tries all ways to give each row a column of its own.
func leastOf(cost [][]int, taken []bool) int {
	if len(cost) == 0 {
		return 0
	}
	best := -1
	for j, c := range cost[0] {
		if taken[j] {
			continue
		}
		taken[j] = true
		if sum := c + leastOf(cost[1:], taken); best < 0 || sum < best {
			best = sum
		}
		taken[j] = false
	}
	return best
}

// Documents go to the agents that have read them. Two of one agent come together once: one of them is read again.
func ExampleAssign() {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	agents := []contextpilot.Scope{{Replica: "ana"}, {Replica: "ben"}}
	names := []string{"ana", "ben"}
	for _, retrieved := range []string{"boiler roof", "roof lamp", "lamp boiler", "boiler roof"} {
		var requests []contextpilot.Request
		for _, block := range docs(retrieved) {
			requests = append(requests, contextpilot.Request{Blocks: []contextpilot.Block{block}})
		}
		a, _ := engines.Assign(pilot, requests, agents)
		for i, req := range requests {
			req.Scope = agents[a.To[i]]
			plan := pilot.Plan(req)
			fmt.Printf("%s: %s, %d of 100 tokens to compute\n", names[a.To[i]], req.Blocks[0].ID, 100-plan.Prefix.Tokens)
		}
	}
	// Output:
	// ana: boiler, 100 of 100 tokens to compute
	// ben: roof, 100 of 100 tokens to compute
	// ben: roof, 4 of 100 tokens to compute
	// ana: lamp, 100 of 100 tokens to compute
	// ana: lamp, 4 of 100 tokens to compute
	// ben: boiler, 100 of 100 tokens to compute
	// ana: boiler, 4 of 100 tokens to compute
	// ben: roof, 4 of 100 tokens to compute
}

func BenchmarkAssign(b *testing.B) {
	for _, n := range []int{15, 64} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			p, err := contextpilot.New(contextpilot.Config{MaxScopes: n})
			if err != nil {
				b.Fatal(err)
			}
			sets, scopes := contexts(400, n), agents(n)
			var reqs []contextpilot.Request
			for _, set := range sets {
				reqs = reqs[:0]
				for i, block := range set {
					reqs = append(reqs, contextpilot.Request{Scope: scopes[i], Blocks: []contextpilot.Block{block}})
					p.Plan(reqs[i])
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := engines.Assign(p, reqs, scopes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
