package contextpilot

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/contextpilot/internal/online"
	"github.com/ragpilot/ragpilot/internal/prompt/offline"
)

// bestOptions configures the policy `best`. The zero value is what the name stands for.
type bestOptions struct {
	// Future weighs what later requests can reuse of a path against what this request reuses now, as a share of the
	// tokens behind the path. Above 0.1 short requests lose more than later ones gain. 0: 0.08; negative: nothing.
	Future float64
	// Aging is how much of a resident token's worth is lost with every doubling of the requests since it was last
	// sent (beyond the first 50), because the engine may have dropped it. 0: 0.075; negative: nothing, for an index
	// that learns of every eviction.
	Aging float64
	// Visits bounds the resident blocks that paths are tried through for one request; at each, as many look-ups as the
	// request has blocks may be needed. 0: 512.
	Visits int
}

// best puts the best resident path first and arranges the blocks behind it for later requests.
//
// The path is the one with the largest worth of its resident tokens and of the future that it leaves open: a path
// that runs through blocks which likely futures lack hides everything behind it from them. Futures and the
// arrangement of the rest: package contextpilot/internal/online. Offline: package internal/prompt/offline.
type best struct {
	opt     bestOptions
	history *online.History
	search  pathSearch
	why     Why
	asked   string // request of the last Order, whose outlook Sent will remember
	blocks  []online.Block
	aside   []online.Block // of peek
}

func newBest(o bestOptions) Policy {
	o.Future = defaultTo(o.Future, 0.08)
	o.Aging = defaultTo(o.Aging, 0.075)
	if o.Visits <= 0 {
		o.Visits = 512
	}
	return &best{opt: o, history: online.New()}
}

// defaultTo returns v, def for 0, and 0 for less.
func defaultTo(v, def float64) float64 {
	if v == 0 {
		return def
	}
	return max(v, 0)
}

func (*best) Name() string { return "best" }

// Order looks for neighbours and for the best path. Time: the uses of the request's blocks, at most opt.Visits nodes
// of the index, and O(k²) for the rest. Behind a conversation's history no other prompt can be met: retrieval order.
func (b *best) Order(dst []int, q Query) []int {
	b.asked, b.why = "", Why{}
	if q.Continued() || len(q.Blocks) == 0 {
		return identity(dst, len(q.Blocks))
	}
	out := b.look(q)
	path := b.search.run(q, out, b.opt)
	b.why = Why{
		Neighbours: out.Neighbours(), Path: len(path), PathTokens: b.search.tokens, Longest: b.search.longest,
		Visited: b.search.visited, Bounded: b.search.visited >= b.opt.Visits,
	}
	r := b.beginning(q, b.blocks, b.search.tokens)
	if b.why.Retrieval, b.why.Stays = r.retrieval, r.stays; r.stays {
		b.why.Path, b.why.PathTokens = r.blocks, r.tokens
		path = identity(nil, len(q.Blocks))
	}
	dst, b.why.Rule = out.Arrange(dst, path)
	b.asked = q.Request
	return dst
}

func (b *best) look(q Query) *online.Outlook {
	b.read(q)
	return b.history.Look(b.blocks)
}

func (b *best) read(q Query) { b.blocks = foreseen(b.blocks[:0], q) }

func foreseen(dst []online.Block, q Query) []online.Block {
	for _, c := range q.Blocks {
		dst = append(dst, online.Block{Key: uint64(c.Key), Tokens: c.Tokens, Score: c.Score})
	}
	return dst
}

// Sent remembers the request and what every rule would have sent.
func (b *best) Sent(request string, q Query, _ []int) {
	if q.Continued() || len(q.Blocks) == 0 {
		return
	}
	if b.asked == request {
		b.history.Remember()
	} else {
		b.read(q)
		b.history.Add(b.blocks)
	}
	b.asked = ""
}

// Gone changes nothing: what was asked is remembered whether it is resident or not.
func (*best) Gone(string) {}

// Past returns how many blocks of earlier requests are remembered.
func (b *best) Past() int { return b.history.Held() }

// ForgetPast forgets so many of the oldest.
func (b *best) ForgetPast(blocks int) { b.history.Forget(blocks) }

// Await makes requests that are about to follow known.
func (b *best) Await(requests [][]Key) {
	keys := make([][]uint64, len(requests))
	for i, r := range requests {
		for _, k := range r {
			keys[i] = append(keys[i], uint64(k))
		}
	}
	b.history.Await(keys)
}

// Why explains the last Order.
func (b *best) Why() Why { return b.why }

// Peek is Order without learning.
func (b *best) Peek(dst []int, q Query) (order []int, familiar int) {
	if q.Continued() || len(q.Blocks) == 0 {
		return identity(dst, len(q.Blocks)), 0
	}
	b.aside = foreseen(b.aside[:0], q)
	out := b.history.Peek(b.aside)
	path := b.search.run(q, out, b.opt)
	if b.beginning(q, b.aside, b.search.tokens).stays {
		path = identity(nil, len(q.Blocks))
	}
	dst, _ = out.Arrange(dst, path)
	return dst, b.history.Familiar(b.aside)
}

// OrderBatch merges the requests bottom-up, see package internal/prompt/offline. Blocks behind the last shared one stand as
// retrieved.
func (b *best) OrderBatch(ctx context.Context, qs []Query) (orders [][]int, schedule []int, groups [][]int, err error) {
	n := numbering{of: map[Key]int32{}}
	sets := make([][]int32, len(qs))
	for i, q := range qs {
		sets[i] = n.set(q)
	}
	res, err := offline.Plan(ctx, sets, n.tokens, offline.Options{})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("merge %d requests: %w", len(qs), err)
	}
	return wide(res.Orders), res.Schedule, res.Groups, nil
}

// numbering numbers the blocks of a batch.
type numbering struct {
	of     map[Key]int32
	tokens []int32 // by number
}

func (n *numbering) set(q Query) []int32 {
	set := make([]int32, len(q.Blocks))
	for i, c := range q.Blocks {
		d, ok := n.of[c.Key]
		if !ok {
			d = int32(len(n.tokens))
			n.of[c.Key] = d
			n.tokens = append(n.tokens, int32(c.Tokens))
		}
		set[i] = d
	}
	return set
}

func wide(orders [][]int32) [][]int {
	out := make([][]int, len(orders))
	for i, o := range orders {
		out[i] = make([]int, len(o))
		for j, at := range o {
			out[i][j] = int(at)
		}
	}
	return out
}
