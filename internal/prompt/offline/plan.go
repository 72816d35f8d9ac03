package offline

import (
	"context"
	"math"
	"math/rand/v2"
)

// Options say how much work a plan is worth. The zero value is the recommended setup.
type Options struct {
	// Effort bounds the local search: steps for each block of a distinct set, a step being a node or a block looked
	// at. 0: 5 for each block of a mean set beyond 7, within 30 and 450, since deeper tries take longer to settle, but less for
	// very many blocks: at most 60 million steps in all, or 20 a block. Below 0: no local search.
	Effort int
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
// Equal arguments give equal plans. A partitioned plan uses all cores.
func Plan(ctx context.Context, sets [][]int32, weight []int32, o Options) (Result, error) {
	if err := check(sets, weight); err != nil {
		return Result{}, err
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

// scratch is reused from one part to the next.
type scratch struct {
	number, where []int32 // by block ID
}

func newScratch(weight []int32) *scratch {
	return &scratch{number: make([]int32, len(weight)), where: make([]int32, len(weight))}
}

// plan orders sets that are planned as one whole.
func (s *scratch) plan(ctx context.Context, sets [][]int32, weight []int32, o Options) (orders [][]int32, schedule []int, err error) {
	p := reduce(sets, weight, s.number)
	defer p.clear(sets)
	f, err := p.solve(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	orders, schedule = p.order(f, sets, s.where)
	return orders, schedule, nil
}

// solve finds a forest for the problem.
func (p *problem) solve(ctx context.Context, o Options) (*forest, error) {
	count := make([]int32, len(p.weight))
	blocks, tokens := 0, 0.0
	for _, s := range p.sets {
		blocks += len(s)
		for _, d := range s {
			count[d]++
			tokens += float64(p.weight[d])
		}
	}
	effort := o.Effort
	if effort == 0 {
		effort = min(max(5*blocks/max(len(p.sets), 1)-35, 30), 450)
		effort = max(min(effort, mostEffort/max(blocks, 1)), leastEffort)
	}
	worthwhile := effort > 0 && len(p.sets) > 2
	var holders [][]int32
	if worthwhile { // now, since agglomerate takes the sets over
		arena := make([]int32, blocks)
		holders = make([][]int32, len(p.weight))
		for d, n := range count {
			holders[d], arena = arena[:0:n], arena[n:]
		}
		for i, s := range p.sets {
			for _, d := range s {
				holders[d] = append(holders[d], int32(i+1))
			}
		}
	}
	f, err := agglomerate(ctx, p.weight, p.sets)
	if err != nil || !worthwhile {
		return f, err
	}
	budget := math.MaxInt
	if effort < math.MaxInt/max(blocks, 1) {
		budget = effort * blocks
	}
	pcg := rand.NewPCG(o.Seed, 0)
	f.at.rnd = pcg
	s := search{f: f, ctx: ctx, rnd: rand.New(pcg), unit: tokens / float64(max(blocks, 1)), budget: budget, holders: holders}
	return f, s.run()
}
