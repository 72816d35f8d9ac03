package contextpilot

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/zeebo/xxh3"
)

// retrieval keeps the retriever's order.
type retrieval struct{}

func (retrieval) Name() string { return "retrieval" }

func (retrieval) Order(dst []int, q Query) []int { return identity(dst, len(q.Blocks)) }

// sorted orders by ID as byte strings, so that equal sets give equal prompts.
type sorted struct{}

func (sorted) Name() string { return "sorted" }

func (sorted) Order(dst []int, q Query) []int {
	return orderBy(dst, q, func(a, b int) int { return cmp.Compare(q.Blocks[a].ID, q.Blocks[b].ID) })
}

// random orders by a hash of request and block: the same for the same request, and no two requests alike.
type random struct{}

func (random) Name() string { return "random" }

func (random) Order(dst []int, q Query) []int {
	h := func(i int) uint64 { return xxh3.HashStringSeed(q.Request, uint64(q.Blocks[i].Key)) }
	return orderBy(dst, q, func(a, b int) int { return cmp.Compare(h(a), h(b)) })
}

// orderBy appends the blocks in the given order; ties stay as retrieved.
func orderBy(dst []int, q Query, compare func(a, b int) int) []int {
	at := len(dst)
	dst = identity(dst, len(q.Blocks))
	slices.SortStableFunc(dst[at:], compare)
	return dst
}

// maxLearned bounds the blocks that frequency and recency remember.
const maxLearned = 1 << 20

// frequency puts first what most requests so far had; offline, what most requests of the batch have.
type frequency struct{ count map[Key]uint32 }

func newFrequency() *frequency { return &frequency{count: map[Key]uint32{}} }

func (*frequency) Name() string { return "frequency" }

func (f *frequency) Order(dst []int, q Query) []int {
	return orderBy(dst, q, func(a, b int) int {
		x, y := &q.Blocks[a], &q.Blocks[b]
		return cmp.Or(cmp.Compare(f.count[y.Key], f.count[x.Key]), cmp.Compare(x.ID, y.ID))
	})
}

// Sent counts the request's blocks. A full table forgets half of every count, and blocks that are left with none.
func (f *frequency) Sent(_ string, q Query, _ []int) {
	for _, b := range q.Blocks {
		f.count[b.Key]++
	}
	if len(f.count) > maxLearned {
		maps.DeleteFunc(f.count, func(k Key, n uint32) bool {
			f.count[k] = n / 2
			return n < 2
		})
	}
}

func (*frequency) Gone(string) {}

// OrderBatch counts over the whole batch and runs it in the depth-first order of the resulting trie.
func (f *frequency) OrderBatch(_ context.Context, qs []Query) (orders [][]int, schedule []int, groups [][]int, err error) {
	for _, q := range qs {
		f.Sent("", q, nil)
	}
	keys := make([][]Key, len(qs))
	for i, q := range qs {
		order := orderBy(nil, q, func(a, b int) int {
			x, y := q.Blocks[a].Key, q.Blocks[b].Key
			return cmp.Or(cmp.Compare(f.count[y], f.count[x]), cmp.Compare(x, y))
		})
		orders = append(orders, order)
		for _, j := range order {
			keys[i] = append(keys[i], q.Blocks[j].Key)
		}
	}
	schedule, groups = depthFirst(keys)
	return orders, schedule, groups, nil
}

// recency puts first what was used last.
type recency struct {
	last map[Key]uint64
	now  uint64
}

func newRecency() *recency { return &recency{last: map[Key]uint64{}} }

func (*recency) Name() string { return "recency" }

func (r *recency) Order(dst []int, q Query) []int {
	return orderBy(dst, q, func(a, b int) int { return cmp.Compare(r.last[q.Blocks[b].Key], r.last[q.Blocks[a].Key]) })
}

// Sent notes the request's blocks. A full table forgets the older half.
func (r *recency) Sent(_ string, q Query, _ []int) {
	r.now++
	for _, b := range q.Blocks {
		r.last[b.Key] = r.now
	}
	if len(r.last) > maxLearned {
		ages := slices.Sorted(maps.Values(r.last))
		middle := ages[len(ages)/2]
		maps.DeleteFunc(r.last, func(_ Key, at uint64) bool { return at <= middle })
	}
}

func (*recency) Gone(string) {}

// oracle tries all orders and takes the one with the longest resident prefix; the rest follows as retrieved. It is what
// other policies' paths are compared with, and does not think of later requests. An order is followed as long as it
// is resident, so that the time is O(k × nodes of the index that are made of the request's blocks only), which has no
// useful bound: for short requests and small indexes.
type oracle struct {
	order, best []int
	tokens      int
}

func (*oracle) Name() string { return "oracle" }

func (o *oracle) Order(dst []int, q Query) []int {
	o.order = identity(o.order[:0], len(q.Blocks))
	o.best, o.tokens = append(o.best[:0], o.order...), 0
	if q.From != NoNode {
		o.try(q, q.From, 0)
	}
	return append(dst, o.best...)
}

// try goes on behind n, where the first depth blocks of the order have led.
func (o *oracle) try(q Query, n Node, depth int) {
	if t := q.Tree.Tokens(n) - q.Tree.Tokens(q.From); t > o.tokens {
		o.best, o.tokens = append(o.best[:0], o.order...), t
	}
	rest := o.order[depth:]
	for i, j := range rest {
		if c, ok := q.Tree.Child(n, q.Blocks[j].Key); ok {
			copy(rest[1:i+1], rest[:i]) // the others keep their order
			rest[0] = j
			o.try(q, c, depth+1)
			copy(rest[:i], rest[1:i+1])
			rest[i] = j
		}
	}
}

// knowledgeTree is RAGCache++ Alg. 1 as printed: from the root of the trie of sent orders, step to the child of
// the best-ranked remaining block that has one, as long as there is one; the rest follows as retrieved. A node
// is cached as long as it is in the index. O(k²) map lookups at worst.
type knowledgeTree struct{}

func (knowledgeTree) Name() string { return "knowledge-tree" }

func (knowledgeTree) Order(dst []int, q Query) []int {
	at := len(dst)
	dst = identity(dst, len(q.Blocks))
	rest := dst[at:] // placed blocks are rotated to the front, the others keep rank order
	for node := q.From; len(rest) > 0; {
		found := -1
		for i, j := range rest {
			if child, ok := q.Tree.Child(node, q.Blocks[j].Key); ok {
				found, node = i, child
				break
			}
		}
		if found < 0 {
			break
		}
		j := rest[found]
		copy(rest[1:found+1], rest[:found])
		rest[0] = j
		rest = rest[1:]
	}
	return dst
}

// depthFirst returns the order in which requests with these block orders visit their trie depth first, branches
// in order of first appearance: requests that share a prefix run next to each other at every level, so that the
// reuse does not depend on the size of the cache. Groups are the branches at the root.
func depthFirst(orders [][]Key) (schedule []int, groups [][]int) {
	type branch struct {
		kids  map[Key]int
		first []int // children in order of appearance
		ends  []int // requests that end here
	}
	nodes := []branch{{}}
	for i, order := range orders {
		n := 0
		for _, k := range order {
			c, ok := nodes[n].kids[k]
			if !ok {
				c = len(nodes)
				if nodes[n].kids == nil {
					nodes[n].kids = map[Key]int{}
				}
				nodes[n].kids[k] = c
				nodes[n].first = append(nodes[n].first, c)
				nodes = append(nodes, branch{})
			}
			n = c
		}
		nodes[n].ends = append(nodes[n].ends, i)
	}
	var visit func(n int)
	visit = func(n int) {
		schedule = append(schedule, nodes[n].ends...)
		for _, c := range nodes[n].first {
			visit(c)
		}
	}
	if ends := nodes[0].ends; len(ends) > 0 {
		schedule = append(schedule, ends...)
		groups = append(groups, slices.Clone(ends))
	}
	for _, c := range nodes[0].first {
		at := len(schedule)
		visit(c)
		groups = append(groups, slices.Clone(schedule[at:]))
	}
	return schedule, groups
}
