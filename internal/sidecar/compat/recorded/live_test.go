package recorded_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/paper"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
)

func reorder(t testing.TB, x *recorded.Index, tokens int, prefix string, contexts ...[]paper.Doc) recorded.Step {
	t.Helper()
	job := recorded.Job{Contexts: contexts, Tokens: tokens, Options: paper.Options{Alpha: paper.DefaultAlpha}}
	for i := range contexts {
		job.IDs = append(job.IDs, fmt.Sprint(prefix, i))
	}
	st, err := x.Reorder(context.Background(), others{func() {}}, job)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// others is a lock whose Pause lets others do something.
type others struct{ do func() }

func (others) Lock()    {}
func (others) Unlock()  {}
func (o others) Pause() { o.do() }

// The numbers of tokens and nodes are those of the recording live/initial-incremental-evict-stats.
func TestTokens(t *testing.T) {
	x := recorded.NewIndex(paper.Options{})
	check(t, "before", recorded.Stats{}, x.Stats())
	a := reorder(t, x, 100, "a", []paper.Doc{1, 2, 3, 4, 5}, []paper.Doc{1, 2, 3, 6, 7}, []paper.Doc{8, 9, 10, 11, 12})
	check(t, "first batch", []any{true, 5, 300, []int{0, 1, 2}}, []any{a.Initial, a.Stats.Nodes, a.Stats.Tokens, a.Nodes})
	b := reorder(t, x, 50, "b", []paper.Doc{3, 2, 1, 20}, []paper.Doc{30, 31, 32}, []paper.Doc{12, 8, 40})
	check(t, "second batch", []any{false, 10, 380, []int{6, 9, 8}}, []any{b.Initial, b.Stats.Nodes, b.Stats.Tokens, b.Nodes})
	check(t, "removed", recorded.Removed{Known: true, Held: true, Node: 0}, x.Remove("a0"))
	x.Remove("b1")
	st := x.Stats()
	st.SearchTime = 0
	check(t, "after", recorded.Stats{Nodes: 8, Tokens: 290, Requests: 4, Searches: 3, Insertions: 3, Removals: 2}, st)
	check(t, "requests", []string{"a1", "a2", "b0", "b2"}, x.Requests())
}

func TestInsertAt(t *testing.T) {
	x := recorded.NewIndex(paper.Options{Alpha: paper.DefaultAlpha})
	check(t, "nothing is found", recorded.Found{Path: []int{}, Node: -1}, x.Search([]paper.Doc{1}))
	check(t, "into nothing", recorded.Place{Path: []int{0}, Node: 1}, x.Insert("a", []paper.Doc{1, 2, 3}, []int{5}, 10))
	check(t, "beside a leaf", recorded.Place{Path: []int{1}, Node: 2}, x.Insert("b", []paper.Doc{7}, []int{0}, 10))
	reorder(t, x, 30, "c", []paper.Doc{2, 1, 9})
	check(t, "below an inner node", []int{0, 2}, x.Insert("d", []paper.Doc{1, 2}, []int{0}, 30).Path)
	check(t, "below the root", []int{2}, x.Insert("e", []paper.Doc{8}, []int{0, 9}, 0).Path)
	check(t, "counted", 5, x.Stats().Insertions)
}

func TestBound(t *testing.T) {
	x := recorded.NewIndex(paper.Options{Alpha: paper.DefaultAlpha})
	x.Bound(3)
	reorder(t, x, 0, "a", []paper.Doc{1, 2}, []paper.Doc{1, 3})
	x.Track("seen")
	x.Track("a0") // is young again
	reorder(t, x, 0, "b", []paper.Doc{1, 4})
	check(t, "the oldest left", []string{"seen", "a0", "b0"}, x.Requests())
	check(t, "known by ID", recorded.Removed{Known: true, Node: -1}, x.Remove("seen"))
	check(t, "unknown", recorded.Removed{Node: -1}, x.Remove("a1"))
	long := make([]paper.Doc, 150)
	for i := range long {
		long[i] = paper.Doc(1000 + i)
	}
	reorder(t, x, 0, "c", long)
	check(t, "few long ones are as many", []string{"a0", "b0", "c0"}, x.Requests())
	reorder(t, x, 0, "d", long[:140])
	check(t, "and push out others", []string{"d0"}, x.Requests())
}

// TestBoundOfBareIDs: IDs without a context leave each other before they push out contexts.
func TestBoundOfBareIDs(t *testing.T) {
	x := recorded.NewIndex(paper.Options{Alpha: paper.DefaultAlpha})
	x.Bound(4)
	reorder(t, x, 0, "a", []paper.Doc{1, 2}, []paper.Doc{1, 3})
	for i := range 9 {
		x.Track(fmt.Sprint("chat ", i))
	}
	check(t, "contexts stay", []string{"a0", "a1", "chat 7", "chat 8"}, x.Requests())
	x.Track("a0")
	check(t, "a context is none of them", []string{"a1", "chat 7", "chat 8", "a0"}, x.Requests())
}

// Others change the index whenever they are let in: what was found before may be gone. Nothing of the batch is lost, its
// order stays one, and all of it can be evicted.
func TestReorderAmongOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		held := map[paper.Doc]int{}
		x := recorded.NewIndex(paper.Options{Alpha: paper.DefaultAlpha, Hold: func(docs []paper.Doc, delta int) {
			for _, d := range docs {
				if held[d] += delta; held[d] == 0 {
					delete(held, d)
				}
			}
		}})
		draw := func(name string, least int) [][]paper.Doc {
			return rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.Map(rapid.IntRange(0, 9), func(i int) paper.Doc { return paper.Doc(i) }), 0, 4,
				rapid.ID), least, 6).
				Draw(t, name)
		}
		serial := 0
		job := func(contexts [][]paper.Doc) recorded.Job {
			j := recorded.Job{Contexts: contexts, Name: func(d paper.Doc) paper.Doc { return 2*d + 1 }}
			for range contexts {
				serial++
				j.IDs = append(j.IDs, fmt.Sprint(serial))
			}
			return j
		}
		quiet := others{func() {}}
		if _, err := x.Reorder(context.Background(), quiet, job(draw("first", 0))); err != nil {
			t.Fatal(err)
		}
		busy := others{func() {
			if ids := x.Requests(); len(ids) > 0 && rapid.Bool().Draw(t, "evict") {
				x.Remove(rapid.SampledFrom(ids).Draw(t, "which"))
			}
			if rapid.IntRange(0, 3).Draw(t, "insert") == 0 {
				serial++
				x.Insert(fmt.Sprint(serial), []paper.Doc{2*paper.Doc(serial%9) + 1, 101}, []int{0}, 5)
			}
		}}
		batch := draw("second", 1)
		st, err := x.Reorder(context.Background(), busy, job(batch))
		if err != nil {
			t.Fatal(err)
		}
		var all []int
		for i, c := range batch {
			all = append(all, i)
			if !slices.Equal(slices.Sorted(slices.Values(st.Orders[i])), slices.Sorted(slices.Values(c))) {
				t.Fatalf("order %v of %v", st.Orders[i], c)
			}
		}
		if !slices.Equal(slices.Sorted(slices.Values(st.Order)), all) {
			t.Fatalf("execution order %v of %d", st.Order, len(batch))
		}
		x.Evict(x.Requests()...)
		root := x.Tree().Docs(x.Tree().Root())
		if x.Len() != 1 || len(held) != len(root) || x.Stats().Tokens != 0 {
			t.Fatalf("left: %d nodes, docs %v of the root's %v, %d tokens", x.Len(), held, root, x.Stats().Tokens)
		}
	})
}

// Two first batches at once: the second to end extends what the first one began.
func TestReorderSecondFirst(t *testing.T) {
	x := recorded.NewIndex(paper.Options{Alpha: paper.DefaultAlpha})
	st, err := x.Reorder(context.Background(), others{func() {}}, recorded.Job{
		Contexts: [][]paper.Doc{{3, 1}}, IDs: []string{"late"},
		Cluster: func(ctx context.Context, opt paper.Options, contexts [][]paper.Doc) (*recorded.Clustering, error) {
			reorder(t, x, 0, "early", []paper.Doc{1, 2, 3})
			return recorded.Cluster(ctx, opt, contexts)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "step", []any{false, 1, [][]paper.Doc{{1, 3}}}, []any{st.Initial, st.Matched, st.Orders})
}

func TestReorderCancelledLate(t *testing.T) {
	x := recorded.NewIndex(paper.Options{Alpha: paper.DefaultAlpha})
	reorder(t, x, 0, "a", []paper.Doc{1, 2})
	ctx, cancel := context.WithCancel(context.Background())
	_, err := x.Reorder(ctx, others{cancel}, recorded.Job{Contexts: [][]paper.Doc{{1, 3}}, IDs: []string{"b"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	check(t, "requests", []string{"a0"}, x.Requests())
}

func TestClustering(t *testing.T) {
	c, err := recorded.Cluster(context.Background(), paper.Options{Alpha: paper.DefaultAlpha}, nil)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "no context: nodes, leaves", [2]int{1, 1}, [2]int{c.Nodes, c.Leaves})
}

func TestChainClear(t *testing.T) {
	c := recorded.NewChains[string](10)
	add(t, c, "1", "", "a")
	add(t, c, "2", "1", "b")
	add(t, c, "3", "2", "c")
	add(t, c, "2b", "1", "d")
	check(t, "unknown", 0, c.Clear("nobody"))
	check(t, "the turn and what was before it", 2, c.Clear("2"))
	check(t, "left", []bool{false, false, true, true}, []bool{c.Has("1"), c.Has("2"), c.Has("3"), c.Has("2b")})
	check(t, "what came after it has lost them", []string{"a", "b"}, add(t, c, "4", "3", "a", "b", "c").New)
	// The IDs may be used again, and age from then on.
	for i := range 9 {
		add(t, c, fmt.Sprint("x", i), "")
	}
	add(t, c, "1", "", "a")
	check(t, "turns", 10, c.Len())
	check(t, "the young one stays", true, c.Has("1"))
}

func TestChainDocsBound(t *testing.T) {
	c := recorded.NewChains[string](4)
	long := make([]string, 200)
	for i := range long {
		long[i] = fmt.Sprint(i)
	}
	add(t, c, "1", "", long...)
	add(t, c, "2", "", long...)
	check(t, "the first one left", []bool{false, true}, []bool{c.Has("1"), c.Has("2")})
	add(t, c, "3", "", slices.Repeat(long, 3)...)
	check(t, "the last one is never left out", []bool{false, true}, []bool{c.Has("2"), c.Has("3")})
}

// A chain of any length costs a bounded walk.
func TestChainDepth(t *testing.T) {
	c := recorded.NewChains[int](100_000)
	for i := range 10_000 {
		var docs []int
		if i == 9999-4095 || i == 9999-4096 {
			docs = []int{i}
		}
		c.Add(fmt.Sprint(i), fmt.Sprint(i-1), docs, recorded.Hint{}, recorded.Names(docs))
	}
	docs := []int{9999 - 4095, 9999 - 4096}
	out := c.Add("last", "9999", docs, recorded.Hint{}, recorded.Names(docs))
	check(t, "overlapping", []int{9999 - 4095}, out.Overlapping)
}
