package bounds_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// anyTrace draws a trace without sessions and blocks of different lengths for it.
func anyTrace(t *rapid.T, requests, names, k int) ([]trace.Request, *trace.Blocks, []int) {
	blocks := make([]trace.Block, names)
	weight := make([]int, names)
	for i := range blocks {
		text := strings.Repeat("word ", rapid.IntRange(0, 40).Draw(t, "length"))
		blocks[i] = trace.Block{ID: fmt.Sprint(i), Text: text}
		weight[i] = tokens.Count(trace.Doc(blocks[i].ID, text))
	}
	list, err := trace.NewBlocks(blocks...)
	if err != nil {
		t.Fatal(err)
	}
	set := rapid.SliceOfNDistinct(rapid.IntRange(0, names-1), 0, k, rapid.ID[int])
	n := rapid.IntRange(0, requests).Draw(t, "requests")
	out := make([]trace.Request, n)
	for i := range out {
		out[i].ID = fmt.Sprint("r", i)
		out[i].Session = out[i].ID
		for _, b := range set.Draw(t, "docs") {
			out[i].Docs = append(out[i].Docs, fmt.Sprint(b))
		}
	}
	return out, list, weight
}

// index returns the blocks of each request as numbers.
func index(t rapid.TB, requests []trace.Request) [][]int {
	sets := make([][]int, len(requests))
	for i, q := range requests {
		for _, id := range q.Docs {
			var b int
			if _, err := fmt.Sscan(id, &b); err != nil {
				t.Fatal(err)
			}
			sets[i] = append(sets[i], b)
		}
	}
	return sets
}

// common returns the weight of what all sets have in common.
func common(weight []int, sets ...[]int) int {
	sum := 0
	for _, b := range sets[0] {
		if !slices.ContainsFunc(sets, func(s []int) bool { return !slices.Contains(s, b) }) {
			sum += weight[b]
		}
	}
	return sum
}

// optimum returns the most that any plan saves, by trying all: requests whose prefixes are the same so far part by
// their next block, or end.
func optimum(sets [][]int, weight []int) int {
	best := 0
	groups := map[int][][]int{} // by next block; sets without it
	saved := 0
	var part func(i int)
	part = func(i int) {
		if i == len(sets) {
			sum := saved
			for _, g := range groups {
				if len(g) > 1 {
					sum += optimum(g, weight)
				}
			}
			best = max(best, sum)
			return
		}
		part(i + 1) // parts from all others
		for n, b := range sets[i] {
			g := groups[b]
			if len(g) > 0 {
				saved += weight[b]
			}
			groups[b] = append(slices.Clone(g), slices.Delete(slices.Clone(sets[i]), n, n+1))
			part(i + 1)
			groups[b] = g
			if len(g) > 0 {
				saved -= weight[b]
			}
		}
	}
	part(0)
	return best
}

func TestOptimum(t *testing.T) {
	one := []int{1, 1, 1, 1}
	for _, tt := range []struct {
		sets [][]int
		want int
	}{
		{[][]int{{0, 1}, {2, 3}, {0, 1, 2, 3}}, 2},
		{[][]int{{0, 1}, {1, 2}, {2, 0}}, 1},
		{[][]int{{0, 1, 2}, {2, 1, 0}, {1, 3}}, 4},
	} {
		if got := optimum(tt.sets, one); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.sets, got, tt.want)
		}
	}
}

// TestNeverBelow: no plan for a small trace saves more than any of the bounds says.
func TestNeverBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trc, blocks, weight := anyTrace(t, 5, 5, 4)
		got := all(t, problem(t, trc, blocks, true))
		best := optimum(index(t, trc), weight)
		if got.nearest < best || got.spread < best || got.tree < best || got.groups < best {
			t.Errorf("a plan saves %d, bounds are %+v", best, got)
		}
	})
}

// slowSpread takes the requests one by one: always one that has least in common with one of those taken, of these one that has
// least in common with all, of these the first.
func slowSpread(sets [][]int, weight []int) int {
	var taken []int
	left := make([]int, len(sets))
	for i := range left {
		left[i] = i
	}
	value := func(i int) (near, all int) {
		for _, j := range taken {
			near = max(near, common(weight, sets[i], sets[j]))
		}
		for j := range sets {
			if j != i {
				all += common(weight, sets[i], sets[j])
			}
		}
		return near, all
	}
	sum := 0
	for len(left) > 0 {
		at, least, leastAll := 0, math.MaxInt, math.MaxInt
		for n, i := range left {
			if near, all := value(i); near < least || near == least && all < leastAll {
				at, least, leastAll = n, near, all
			}
		}
		sum += least
		taken = append(taken, left[at])
		left = slices.Delete(left, at, at+1)
	}
	return sum
}

// TestSlow: the bounds are what their definitions say, worked out request by request.
func TestSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trc, blocks, weight := anyTrace(t, 14, rapid.IntRange(1, 90).Draw(t, "blocks"), 1000)
		p := problem(t, trc, blocks, true)
		got := all(t, p)
		sets := index(t, trc)
		nearest, tree := 0, span(sets, func(i, j int) int { return common(weight, sets[i], sets[j]) })
		shares := 0.0
		for i := range sets {
			best := 0
			for j := range i {
				best = max(best, common(weight, sets[i], sets[j]))
			}
			nearest += best
			if len(sets[i]) > 0 {
				shares += float64(best) / float64(common(weight, sets[i]))
			}
		}
		want := figures{nearest, slowSpread(sets, weight), tree, slowGroups(sets, weight)}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		mean, err := p.MeanOverlap(context.Background(), 1000)
		if diff := mean*float64(max(1, len(sets))) - shares; err != nil || diff > 1e-9 || diff < -1e-9 {
			t.Errorf("mean overlap %v (%v), want %v / %d", mean, err, shares, len(sets))
		}
	})
}

// span returns the weight of a maximum spanning tree (Prim on a matrix).
func span(sets [][]int, value func(i, j int) int) int {
	best := make([]int, len(sets))
	done := make([]bool, len(sets))
	sum := 0
	for range sets {
		next := -1
		for i := range sets {
			if !done[i] && (next < 0 || best[i] > best[next]) {
				next = i
			}
		}
		done[next] = true
		sum += best[next]
		for i := range sets {
			if !done[i] {
				best[i] = max(best[i], value(i, next))
			}
		}
	}
	return sum
}

func slowGroups(sets [][]int, weight []int) int {
	n := len(sets)
	pair := func(i, j int) int { return common(weight, sets[i], sets[j]) }
	triple := func(i, j int) (best int) {
		for x := range n {
			if x != i && x != j {
				best = max(best, common(weight, sets[i], sets[j], sets[x]))
			}
		}
		return best
	}
	quadruple := func(i, j int) (best int) {
		for x := range n {
			for y := range x {
				if x != i && x != j && y != i && y != j {
					best = max(best, common(weight, sets[i], sets[j], sets[x], sets[y]))
				}
			}
		}
		return best
	}
	s2, s3 := 0, 0
	for i := range n {
		d2, d3 := 0, 0
		for j := range n {
			if i != j {
				d2 = max(d2, pair(i, j)-triple(i, j))
				d3 = max(d3, triple(i, j)-quadruple(i, j))
			}
		}
		s2 += d2
		s3 += d3
	}
	return min(span(sets, pair), span(sets, triple)+s2/2, span(sets, quadruple)+s2/2+s3*2/3)
}
