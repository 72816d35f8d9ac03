package engines_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// window is that of the router, in requests.
const window = 100

func block(id string, tokens int) contextpilot.Block {
	return contextpilot.Block{ID: id, Text: "text of " + id, Tokens: tokens}
}

// hot is the same 15 documents each time.
func hot() []contextpilot.Block {
	var out []contextpilot.Block
	for i := range 15 {
		out = append(out, block(fmt.Sprint("hot", i), 100))
	}
	return out
}

// adversaries are workloads that a router which only follows prefixes sends to one replica, or that no count of requests
// balances.
func adversaries() map[string]func(i int, r *rand.Rand) []contextpilot.Block {
	own := func(i, tokens int) contextpilot.Block { return block(fmt.Sprint("own", i), tokens) }
	return map[string]func(i int, r *rand.Rand) []contextpilot.Block{
		"one hot set":          func(int, *rand.Rand) []contextpilot.Block { return hot() },
		"one hot set and more": func(i int, _ *rand.Rand) []contextpilot.Block { return append(hot(), own(i, 500)) },
		"three quarters hot":   func(i int, _ *rand.Rand) []contextpilot.Block { return append(hot()[:15*min(i%4, 1)], own(i, 400)) },
		"Pareto": func(i int, r *rand.Rand) []contextpilot.Block {
			return []contextpilot.Block{own(i, min(int(100/(1-r.Float64())), 50_000))}
		},
		"a giant in ten, and hot": func(i int, _ *rand.Rand) []contextpilot.Block {
			return append(hot()[:15*min(i%10, 1)], own(i, 16+20_000*(1-min(i%10, 1))))
		},
		"hot and light in turn": func(i int, _ *rand.Rand) []contextpilot.Block {
			if i/50%2 == 0 {
				return append(hot(), own(i, 800))
			}
			return []contextpilot.Block{own(i, 100)}
		},
	}
}

// TestBalance: of any window of requests in a row, no replica computes more than MaxShare times the mean and one request, since
// these are indivisible.
func TestBalance(t *testing.T) {
	testkit.NotUnderRace(t)
	for name, blocks := range adversaries() {
		for _, n := range []int{2, 4, 8} {
			t.Run(fmt.Sprintf("%s, %d replicas", name, n), func(t *testing.T) {
				var names []string
				for i := range n {
					names = append(names, fmt.Sprint(i))
				}
				r, _ := newRouter(t, engines.RouterOptions{Window: window}, names...)
				rnd := rand.New(rand.NewPCG(1, 2))
				var at, cost []int
				largest := 0
				for i := range 6 * window {
					rt := serve(t, r, contextpilot.Request{HeadTokens: 50, Query: fmt.Sprint("question ", i), Blocks: blocks(i, rnd)})
					at, cost = append(at, int(rt.Score.Replica[0]-'0')), append(cost, rt.Score.Match.Prompt-rt.Plan.Prefix.Tokens)
					largest = max(largest, cost[i])
				}
				checkBalance(t, n, at, cost, largest)
			})
		}
	}
}

func checkBalance(t *testing.T, n int, at, cost []int, largest int) {
	t.Helper()
	sums, total := make([]int, n), 0
	for i := range at {
		sums[at[i]] += cost[i]
		total += cost[i]
		if i >= window {
			sums[at[i-window]] -= cost[i-window]
			total -= cost[i-window]
		}
		for replica, sum := range sums {
			if bound := 1.15*float64(total)/float64(n) + float64(largest); i >= window-1 && float64(sum) > bound {
				t.Fatalf("of the %d requests up to %d, replica %d computes %d of %d tokens, bound %.0f", window, i, replica, sum, total, bound)
			}
		}
	}
}
