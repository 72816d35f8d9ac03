package offline

import (
	"context"
	"time"
)

// Options say how much work a plan is worth. The zero value is the recommended setup.
type Options struct {
	// Effort bounds the local search: steps for each block of a distinct set, a step being a node or a block looked
	// at. 0: 5 for each block of a mean set beyond 7, within 30 and 450, since deeper tries take longer to settle, but less for
	// very many blocks: at most 60 million steps in all, or 20 a block. Below 0: no local search.
	Effort int
	// Deadline ends the local search early. The plan then depends on the machine's speed. Zero: none.
	Deadline time.Time
	// Seed chooses among plans of like quality.
	Seed uint64
	// Partition is the number of requests that are planned as one whole; more are partitioned by likeness. 0:
	// [DefaultPartition].
	Partition int
}

// Bounds of the default effort: steps in all, and steps a block.
const (
	mostEffort  = 60_000_000
	leastEffort = 20
)

// DefaultPartition is the number of requests planned as one whole by the zero [Options].
const DefaultPartition = 100_000

// Result is a plan.
type Result struct {
	Orders   [][]int32 // by request: the positions in its set in the order chosen
	Schedule []int     // requests in the order of execution: depth first in the trie of all orders
	Groups   [][]int   // runs of Schedule that share their first block; a request without blocks is its own group
	Saved    int64     // tokens in shared prefixes: of all prompts less those of the trie
}

// Plan orders all sets. Blocks are distinct within a set and index weight. The caller's slices are only read.
// Without a deadline, equal arguments give equal plans. A partitioned plan uses all cores.
func Plan(ctx context.Context, sets [][]int32, weight []int32, o Options) (Result, error) {
	c, err := newChecker(weight)
	if err != nil {
		return Result{}, err
	}
	for i, s := range sets {
		if err := c.check(i, s); err != nil {
			return Result{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if len(sets) <= o.partition() {
		orders, schedule, err := newScratch(weight).plan(ctx, sets, weight, o)
		if err != nil {
			return Result{}, err
		}
		return finish(sets, orders, schedule, weight), nil
	}
	return planDistinct(ctx, sets, weight, o)
}

func (o Options) partition() int {
	if o.Partition <= 0 {
		return DefaultPartition
	}
	return o.Partition
}

func finish(sets, orders [][]int32, schedule []int, weight []int32) Result {
	res := Result{Orders: orders, Schedule: schedule}
	at := 0
	res.Saved = arrange(sets, orders, schedule, weight, func(n int) {
		res.Groups = append(res.Groups, schedule[at:at+n:at+n])
		at += n
	})
	return res
}
