package paper_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/paper"
)

// naive is agglomerative clustering from the definition: in every round the two clusters of least distance, which
// is taken anew over all pairs of members.
func naive(sets []docs, how paper.Linkage) (members [][]int, at []float64) {
	clusters := make([][]int, len(sets))
	for i := range clusters {
		clusters[i] = []int{i}
	}
	between := func(a, b []int) float64 {
		sum, least, most := 0.0, math.Inf(1), 0.0
		for _, i := range a {
			for _, j := range b {
				d := float64(float32(paper.Distance(sets[i], sets[j], paper.DefaultAlpha)))
				sum, least, most = sum+d, min(least, d), max(most, d)
			}
		}
		return []float64{paper.Average: sum / float64(len(a)*len(b)), paper.Complete: most, paper.Single: least}[how]
	}
	for len(clusters) > 1 {
		x, y, best := 0, 1, math.Inf(1)
		for i := range clusters {
			for j := range i {
				if d := between(clusters[i], clusters[j]); d < best {
					x, y, best = j, i, d
				}
			}
		}
		joined := slices.Sorted(slices.Values(slices.Concat(clusters[x], clusters[y])))
		clusters = append(slices.Delete(slices.Delete(clusters, y, y+1), x, x+1), joined)
		members, at = append(members, joined), append(at, best)
	}
	return members, at
}

// unlike returns contexts of one common doc and random lengths and positions, so that no two distances tie.
func unlike(r *rand.Rand, n int) []docs {
	for {
		sets := make([]docs, n)
		seen := map[float64]bool{1: true}
		for i := range sets {
			for len(sets[i]) < 20+r.IntN(60) {
				if d := paper.Doc(r.IntN(150)); !slices.Contains(sets[i], d) {
					sets[i] = append(sets[i], d)
				}
			}
		}
		ties := false
		for i := range sets {
			for j := range i {
				d := math.Round(paper.Distance(sets[i], sets[j], paper.DefaultAlpha)*1e6) / 1e6
				ties = ties || seen[d]
				seen[d] = true
			}
		}
		if !ties {
			return sets
		}
	}
}

func TestLinkage(t *testing.T) {
	for how, name := range []string{"average", "complete", "single"} {
		linkage, err := paper.ParseLinkage(name)
		if err != nil || int(linkage) != how {
			t.Fatalf("ParseLinkage(%q) = %v, %v", name, linkage, err)
		}
		r := rand.New(rand.NewPCG(uint64(how), 1))
		for n := range 16 {
			sets := unlike(r, n)
			b, err := paper.NewTree(paper.Options{Alpha: paper.DefaultAlpha, Linkage: linkage}).Build(context.Background(), sets)
			if err != nil {
				t.Fatal(err)
			}
			want, at := naive(sets, linkage)
			if len(b.Merges) != len(want) {
				t.Fatalf("%s, n=%d: %d merges, want %d", name, n, len(b.Merges), len(want))
			}
			members := make([][]int, 0, 2*n)
			for i := range n {
				members = append(members, []int{i})
			}
			for i, m := range b.Merges {
				got := slices.Sorted(slices.Values(slices.Concat(members[m.A], members[m.B])))
				members = append(members, got)
				if !slices.Equal(got, want[i]) || math.Abs(m.Distance-at[i]) > 1e-6 || m.Size != len(got) || m.A >= m.B {
					t.Fatalf("%s, n=%d, merge %d: got %+v of %v, want %v at %v", name, n, i, m, got, want[i], at[i])
				}
			}
		}
	}
	for i, name := range paper.LinkageNames() {
		if l, err := paper.ParseLinkage(name); err != nil || int(l) != i {
			t.Errorf("ParseLinkage(%q) = %v, %v", name, l, err)
		}
	}
	if _, err := paper.ParseLinkage("centroid"); err == nil {
		t.Error("centroid is accepted")
	}
}

// TestLinkageByUpdate compares the linkages that are defined by what a merge does to distances with the textbook:
// in every round the least of all distances (Lance and Williams).
func TestLinkageByUpdate(t *testing.T) {
	for _, how := range []paper.Linkage{paper.Weighted, paper.Ward} {
		r := rand.New(rand.NewPCG(uint64(how), 3))
		for n := range 14 {
			sets := unlike(r, n)
			d := make([][]float64, n)
			id, size := make([]int, n), make([]float64, n)
			for i := range sets {
				id[i], size[i] = i, 1
				d[i] = make([]float64, n)
				for j := range sets {
					d[i][j] = float64(float32(paper.Distance(sets[i], sets[j], paper.DefaultAlpha)))
				}
			}
			b, err := paper.NewTree(paper.Options{Alpha: paper.DefaultAlpha, Linkage: how}).Build(context.Background(), sets)
			if err != nil {
				t.Fatal(err)
			}
			for k, m := range b.Merges {
				x, y := -1, -1
				for i := range n {
					for j := range i {
						if size[i] > 0 && size[j] > 0 && (x < 0 || d[i][j] < d[x][y]) {
							x, y = i, j
						}
					}
				}
				want := paper.Merge{A: min(id[x], id[y]), B: max(id[x], id[y]), Distance: d[x][y], Size: int(size[x] + size[y])}
				if math.Abs(m.Distance-want.Distance) > 1e-9 || m.A != want.A || m.B != want.B || m.Size != want.Size {
					t.Fatalf("%v, n=%d, merge %d: got %+v, want %+v", how, n, k, m, want)
				}
				for z := range n {
					if z == x || z == y || size[z] == 0 {
						continue
					}
					v := (d[x][z] + d[y][z]) / 2
					if how == paper.Ward {
						a, b, c := size[x], size[y], size[z]
						v = math.Sqrt(((a+c)*d[x][z]*d[x][z] + (b+c)*d[y][z]*d[y][z] - c*d[x][y]*d[x][y]) / (a + b + c))
					}
					d[x][z], d[z][x] = v, v
				}
				size[x] += size[y]
				size[y] = 0
				id[x] = n + k
			}
		}
	}
}

func TestBuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		held := map[paper.Doc]int{}
		how := paper.Linkage(rapid.IntRange(0, 2).Draw(t, "linkage"))
		x := paper.NewTree(paper.Options{Alpha: paper.DefaultAlpha, Linkage: how, Hold: holding(held)})
		next := contexts(t)
		var in []docs
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				in = append(in, docs{})
			case 1: // a context again, as the same set
				c := docs{7, 5, 3}
				rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 0)).Shuffle(3, func(i, j int) { c[i], c[j] = c[j], c[i] })
				in = append(in, c)
			default:
				in = append(in, next())
			}
		}
		b, err := x.Build(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkTree(x, held, true); err != nil {
			t.Fatal(err)
		}
		for i, c := range in {
			if !permuted(b.Orders[i], c) {
				t.Fatalf("order %v of %v", b.Orders[i], c)
			}
			leaf := b.Leaves[i]
			if len(c) == 0 {
				if leaf != paper.None {
					t.Fatalf("an empty context has the leaf %v", leaf)
				}
				continue
			}
			if !x.Leaf(leaf) || !slices.Equal(x.Docs(leaf), b.Orders[i]) {
				t.Fatalf("%v: order %v, leaf %v", c, b.Orders[i], x.Docs(leaf))
			}
			path := x.Path(leaf)
			for n := range path {
				if above := x.Docs(x.At(path[:n])); commonPrefix(above, b.Orders[i]) < len(above) {
					t.Fatalf("%v stands above %v", above, b.Orders[i])
				}
			}
			for j, other := range in[:i] {
				if same := permuted(c, other); same != (b.Leaves[j] == leaf) {
					t.Fatalf("contexts %v and %v: same set %v, same leaf %v", c, other, same, !same)
				}
			}
		}
		for _, i := range rapid.Permutation(b.Leaves).Draw(t, "removal order") {
			if i != paper.None {
				x.Remove(i)
			}
		}
		isEmpty(t, x, held)
	})
}

func TestBuildCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	held := map[paper.Doc]int{}
	x := paper.NewTree(paper.Options{Hold: holding(held)})
	for _, how := range []paper.Linkage{paper.Average, paper.Single} {
		_, err := x.Build(ctx, unlike(rand.New(rand.NewPCG(uint64(how), 2)), 5))
		if !errors.Is(err, context.Canceled) || x.Len() != 1 || len(held) != 0 {
			t.Errorf("error %v, %d nodes", err, x.Len())
		}
	}
}

// Order keeps docs that stand in a context twice.
func TestOrderOfRepeated(t *testing.T) {
	x, _ := fig5(t)
	c := docs{2, 9, 1, 2, 9}
	m := x.Search(c)
	equal(t, "order", docs{1, 2, 9, 2, 9}, x.Order(nil, c, m))
	equal(t, "appended", docs{8, 1, 2, 9, 2, 9}, x.Order(docs{8}, c, m))
}
