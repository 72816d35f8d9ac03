package bounds_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/lab/bounds"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// requests makes a request of one turn of each list; a letter is a block.
func requests(lists ...string) []trace.Request {
	var out []trace.Request
	for i, l := range lists {
		id := fmt.Sprint("r", i)
		out = append(out, trace.Request{ID: id, Session: id, Turn: 1, Docs: strings.Split(l, "")})
	}
	return out
}

func problem(t rapid.TB, requests []trace.Request, blocks *trace.Blocks, history bool) *bounds.Problem {
	t.Helper()
	p := bounds.New(blocks, history)
	for _, q := range requests {
		if err := p.Add(q); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

type figures struct{ nearest, spread, tree, groups int }

func all(t rapid.TB, p *bounds.Problem) figures {
	t.Helper()
	ctx := context.Background()
	nearest, err1 := p.Nearest(ctx)
	tree, err2 := p.SpanningTree(ctx)
	groups, err3 := p.Groups(ctx)
	spread, err4 := p.Spread(ctx)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return figures{nearest, spread, tree, groups}
}

func TestBounds(t *testing.T) {
	tests := []struct {
		name     string
		requests []trace.Request
		want     figures
	}{
		{"no request", nil, figures{}},
		{"no documents", []trace.Request{{ID: "a", Session: "a"}}, figures{}},
		{"one request", requests("abc"), figures{}},
		{"nothing in common", requests("ab", "cd", "ef"), figures{}},
		{"the same", requests("abc", "abc", "cba"), figures{6, 6, 6, 6}},
		{"two neighbours", requests("abc", "cde", "abd", "f"), figures{3, 3, 3, 2}},
		{"one of two only", requests("ab", "cd", "abcd"), figures{2, 2, 4, 3}},
		{"a circle", requests("ab", "bc", "ca"), figures{2, 2, 2, 1}},
		{"the middle of a star first", requests("abc", "ax", "by", "cz"), figures{3, 1, 3, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := all(t, problem(t, tt.requests, nil, true)); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestSessions: only first turns share a prefix with others, and later ones save what their session retrieved before.
func TestSessions(t *testing.T) {
	trc := requests("ab", "bc", "ab", "ca")
	for i, session := range []string{"s", "s", "t", "s"} {
		trc[i].Session, trc[i].Turn = session, i+1
	}
	p := problem(t, trc, nil, true)
	if p.Tokens != 8 || p.Repeated != 1+2 || p.Requests() != 2 || p.Blocks() != 3 {
		t.Errorf("tokens %d, repeated %d, %d requests, %d blocks", p.Tokens, p.Repeated, p.Requests(), p.Blocks())
	}
	if got := all(t, p); got != (figures{2, 2, 2, 2}) || p.Share(got.nearest) != 5.0/8 {
		t.Errorf("%+v, share %v", got, p.Share(got.nearest))
	}
	p = problem(t, trc, nil, false)
	if got := all(t, p).nearest; p.Repeated != 0 || p.Requests() != 4 || got != 0+1+2+1 {
		t.Errorf("without history: repeated %d, %d requests, bound %d", p.Repeated, p.Requests(), got)
	}
	if got := bounds.New(nil, true).Share(0); got != 0 {
		t.Errorf("share of nothing: %v", got)
	}
}

func TestTokens(t *testing.T) {
	blocks, err := trace.NewBlocks(trace.Block{ID: "a", Text: "one two three"}, trace.Block{ID: "b", Text: ""})
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, requests("ab", "ba"), blocks, true)
	want := tokens.Count("<doc a>\none two three\n</doc>\n") + tokens.Count("<doc b>\n\n</doc>\n")
	if p.Tokens != 2*want || all(t, p).nearest != want {
		t.Errorf("tokens %d, bound %d, want %d and %d", p.Tokens, all(t, p).nearest, 2*want, want)
	}
	err = p.Add(trace.Request{ID: "q", Docs: []string{"c"}})
	if err == nil || err.Error() != `request "q": unknown block "c"` {
		t.Error(err)
	}
}

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

// TestGenerated compares with the definition where lists are long enough to be left out.
func TestGenerated(t *testing.T) {
	trc, blocks, err := workload.Generate(workload.Options{Contexts: 600, K: 12, Pool: 200, Topics: 12, Zipf: 1, KSpread: 4, BlockTokens: 20})
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, trc, blocks, true)
	got, err := p.Nearest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	weight := map[string]int{}
	for b := range blocks.All() {
		weight[b.ID] = tokens.Count(trace.Doc(b.ID, b.Text))
	}
	want := 0
	uses := make([]map[string]bool, len(trc))
	for i, q := range trc {
		uses[i] = map[string]bool{}
		best := 0
		for j := range i {
			sum := 0
			for _, id := range q.Docs {
				if uses[j][id] {
					sum += weight[id]
				}
			}
			best = max(best, sum)
		}
		want += best
		for _, id := range q.Docs {
			uses[i][id] = true
		}
	}
	if got != want {
		t.Errorf("nearest %d, want %d", got, want)
	}
	every, err1 := p.MeanOverlap(t.Context(), len(trc))
	some, err2 := p.MeanOverlap(t.Context(), 150)
	if err := errors.Join(err1, err2); err != nil || some < every-0.03 || some > every+0.03 {
		t.Errorf("mean overlap of a sample %.3f, of all %.3f (%v)", some, every, err)
	}
}

// TestParallel: several bounds may be computed at a time.
func TestParallel(t *testing.T) {
	trc, blocks, err := workload.Generate(workload.Options{Contexts: 200, K: 5, Pool: 60, BlockTokens: 5})
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, trc, blocks, true)
	want := all(t, p)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got := all(t, p); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
	wg.Wait()
}

func TestCancel(t *testing.T) {
	p := problem(t, requests("abc", "abd"), nil, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, bound := range map[string]func(context.Context) (int, error){
		"nearest": p.Nearest, "spread": p.Spread, "tree": p.SpanningTree,
		"groups": p.Groups,
	} {
		if _, err := bound(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkNearest(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, err := workload.New(workload.Options{Contexts: n, Pool: n / 3, Topics: n / 50, Zipf: 1})
			if err != nil {
				b.Fatal(err)
			}
			p := bounds.New(nil, true)
			for q := range g.Requests() {
				if err := p.Add(q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Nearest(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
