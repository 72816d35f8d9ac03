package paper

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Linkage says how the distance of two clusters follows from the distances of their members.
type Linkage uint8

// The linkages that the published implementation offers and that keep merge distances monotone.
const (
	Average Linkage = iota // unweighted mean (UPGMA), the default
	Complete
	Single
	Weighted // mean of the two clusters, whatever their sizes (WPGMA)
	Ward     // least growth of the variance; Eq. 1 is no Euclidean distance, so this is a habit and not a theorem
)

// LinkageNames are the names that [ParseLinkage] knows, by [Linkage].
func LinkageNames() []string { return []string{"average", "complete", "single", "weighted", "ward"} }

// ParseLinkage returns the linkage of that name, one of [LinkageNames] or "" for average.
func ParseLinkage(name string) (Linkage, error) {
	if i := slices.Index(LinkageNames(), cmp.Or(name, "average")); i >= 0 {
		return Linkage(i), nil
	}
	return 0, fmt.Errorf("linkage %q: want one of %s", name, strings.Join(LinkageNames(), ", "))
}

// Merge joins clusters A and B at Distance into one of Size contexts. Contexts are clusters 0…n−1, the i-th
// merge makes cluster n+i; A < B.
type Merge struct {
	A, B     int
	Distance float64
	Size     int
}

// condensed is the upper triangle of a symmetric n×n matrix, row by row. Values are kept as float32, 4·n·(n−1)/2
// bytes: 200 MB at 10,000 contexts.
type condensed struct {
	n int
	v []float32
}

func (c condensed) at(i, j int) int {
	if i > j {
		i, j = j, i
	}
	return c.n*i - i*(i+1)/2 + j - i - 1
}

// distances computes Eq. 1 for all pairs. Only pairs that share a doc are visited, through posting lists; all
// others are 1.
func distances(ctx context.Context, sets [][]Doc, alpha float64) (condensed, error) {
	n := len(sets)
	m := condensed{n: n, v: make([]float32, n*(n-1)/2)}
	for i := range m.v {
		m.v[i] = 1
	}
	post := map[Doc][]int32{}
	seen := make([]int32, n) // seen[j] == i+1: pair (j, i) is done
	var p positions
	for i, c := range sets {
		if i&63 == 0 && ctx.Err() != nil {
			return m, ctx.Err()
		}
		p.load(c)
		for x, d := range c {
			if last, _ := p.find(d); int(last) != x { // it stands in c again behind x
				continue
			}
			for _, j := range post[d] {
				if seen[j] == int32(i+1) {
					continue
				}
				seen[j] = int32(i + 1)
				dist, _ := p.distance(sets[j], len(c), alpha)
				m.v[m.at(int(j), i)] = float32(dist)
			}
			post[d] = append(post[d], int32(i))
		}
	}
	return m, nil
}

// link clusters n contexts. All but single use the nearest-neighbour chain (Müllner 2011), single uses Prim's
// spanning tree: O(n²) time, one copy of the matrix as float64. Ties are resolved as SciPy resolves
// them, so that the tree is the same as the published implementation's.
func link(ctx context.Context, m condensed, how Linkage) ([]Merge, error) {
	if m.n < 2 {
		return nil, nil
	}
	var z []Merge
	var err error
	if how == Single {
		z, err = spanningTree(ctx, m)
	} else {
		z, err = chain(ctx, m, how)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(z, func(a, b Merge) int { return cmp.Compare(a.Distance, b.Distance) })
	label(z, m.n)
	return z, nil
}

// chain merges the clusters that are each other's nearest (Müllner 2011): a path goes on from cluster to nearest cluster, and can only
// end at two of which each is the nearest to the other. What is left of the path stays valid after their merge.
func chain(ctx context.Context, m condensed, how Linkage) ([]Merge, error) {
	c := newClusters(m)
	z := make([]Merge, 0, m.n-1)
	var path []int
	for len(c.alive) > 1 {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(path) == 0 {
			path = append(path, c.alive[0])
		}
		for {
			before := -1
			if len(path) > 1 {
				before = path[len(path)-2]
			}
			x := path[len(path)-1]
			y, distance := c.nearest(x, before)
			if y == before {
				path = path[:len(path)-2]
				z = append(z, c.merge(min(x, y), max(x, y), distance, how))
				break
			}
			path = append(path, y)
		}
	}
	return z, nil
}

// clusters are those that are left while contexts are joined. Cluster i is the one whose highest member is i.
type clusters struct {
	condensed           // for at
	d         []float64 // distances, by at
	size      []int     // contexts
	alive     []int     // ascending
}

func newClusters(m condensed) *clusters {
	c := &clusters{condensed: m, d: make([]float64, len(m.v)), size: make([]int, m.n), alive: make([]int, m.n)}
	for i, x := range m.v {
		c.d[i] = float64(x)
	}
	for i := range c.size {
		c.size[i], c.alive[i] = 1, i
	}
	return c
}

// nearest returns the cluster nearest to x: of equals first, unless it is −1, then the lowest.
func (c *clusters) nearest(x, first int) (y int, distance float64) {
	y, distance = first, math.Inf(1)
	if first >= 0 {
		distance = c.d[c.at(x, first)]
	}
	for _, i := range c.alive {
		if i != x && c.d[c.at(x, i)] < distance {
			y, distance = i, c.d[c.at(x, i)]
		}
	}
	return y, distance
}

// merge joins x with y, which is higher and stands for both from then on.
func (c *clusters) merge(x, y int, distance float64, how Linkage) Merge {
	nx, ny := float64(c.size[x]), float64(c.size[y])
	c.size[y] += c.size[x]
	gone, _ := slices.BinarySearch(c.alive, x)
	c.alive = slices.Delete(c.alive, gone, gone+1)
	for _, i := range c.alive {
		if i != y {
			at := c.at(i, y)
			c.d[at] = how.join(c.d[c.at(i, x)], c.d[at], distance, nx, ny, float64(c.size[i]))
		}
	}
	return Merge{A: x, B: y, Distance: distance, Size: c.size[y]}
}

// join is the distance of a cluster of n contexts to what clusters x and y become (Lance and Williams): dx and dy are the distances to
// each, b = between is theirs, nx and ny their sizes, N = nx + ny + n.
//
//	Average   (nx·dx + ny·dy) ÷ (nx + ny)
//	Complete  max(dx, dy)
//	Weighted  (dx + dy) ÷ 2
//	Ward      √(((n + nx)·dx² + (n + ny)·dy² − n·b²) ÷ N)
func (l Linkage) join(dx, dy, between, nx, ny, n float64) float64 {
	switch l {
	case Complete:
		return max(dx, dy)
	case Weighted:
		return 0.5 * (dx + dy)
	case Ward:
		t := 1 / (nx + ny + n)
		return math.Sqrt(max((n+nx)*t*dx*dx+(n+ny)*t*dy*dy-n*t*between*between, 0))
	}
	return (nx*dx + ny*dy) / (nx + ny)
}

func spanningTree(ctx context.Context, m condensed) ([]Merge, error) {
	n := m.n
	in := make([]bool, n)
	near := make([]float64, n)
	for i := range near {
		near[i] = math.Inf(1)
	}
	z := make([]Merge, 0, n-1)
	x := 0
	for range n - 1 {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		in[x] = true
		best, y := math.Inf(1), -1
		for i := range n {
			if in[i] {
				continue
			}
			near[i] = min(near[i], float64(m.v[m.at(x, i)]))
			if near[i] < best {
				best, y = near[i], i
			}
		}
		z = append(z, Merge{A: x, B: y, Distance: best})
		x = y
	}
	return z, nil
}

// label turns member indexes of sorted merges into cluster numbers and fills in the sizes.
func label(z []Merge, n int) {
	parent := make([]int, 2*n-1)
	size := make([]int, 2*n-1)
	for i := range parent {
		parent[i], size[i] = i, 1
	}
	find := func(x int) int {
		for parent[x] != x {
			parent[x] = parent[parent[x]]
			x = parent[x]
		}
		return x
	}
	for i := range z {
		a, b := find(z[i].A), find(z[i].B)
		if a > b {
			a, b = b, a
		}
		next := n + i
		parent[a], parent[b] = next, next
		size[next] = size[a] + size[b]
		z[i].A, z[i].B, z[i].Size = a, b, size[next]
	}
}
