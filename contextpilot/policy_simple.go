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

func (retrieval) Name() string                   { return "retrieval" }
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
