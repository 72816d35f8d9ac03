package contextpilot

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/contextpilot/internal/offline"
)

// OrderBatch merges the requests bottom-up, see package contextpilot/internal/offline. Blocks behind the last shared one stand as
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
