package offline

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

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
	search := effort > 0 && len(p.sets) > 2
	var holders [][]int32
	if search { // now, since agglomerate takes the sets over
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
	if err != nil || !search {
		return f, err
	}
	budget := math.MaxInt
	if effort < math.MaxInt/max(blocks, 1) {
		budget = effort * blocks
	}
	s := newSearch(ctx, f, o, budget)
	s.leaves, s.holders = len(p.sets), holders
	s.unit = tokens / float64(max(blocks, 1))
	return f, s.run()
}

// newSearch starts the clock of a search that ends after budget steps.
func newSearch(ctx context.Context, f *forest, o Options, budget int) *search {
	pcg := rand.NewPCG(o.Seed, 0)
	f.at.rnd = pcg
	return &search{f: f, ctx: ctx, rnd: rand.New(pcg), budget: budget, start: time.Now(), deadline: o.Deadline}
}
