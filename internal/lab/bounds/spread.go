package bounds

import (
	"context"

	"github.com/ragpilot/ragpilot/internal/base/queue"
)

// SpanningTree returns another upper bound on what any plan can save: the weight of the maximum spanning tree of the
// requests, where an edge weighs what its two ends have in common. It is never below Nearest, and is the bound that is
// known from the literature on offline orders.
//
// It takes twice the time of adding up all posting lists and stops with the context's error.
func (p *Problem) SpanningTree(ctx context.Context) (int, error) { // Prim's algorithm
	t := newTaken(p)
	edges := queue.New(func(a, b *candidate) bool { return a.weight > b.weight }, placeOf)
	sum, n := 0, 0
	for root := range p.sets {
		if t.done[root] {
			continue
		}
		edges.Push(&t.all[root])
		for edges.Len() > 0 {
			if err := interrupted(ctx, n); err != nil {
				return 0, err
			}
			n++
			e := edges.Top()
			edges.Remove(e)
			sum += int(e.weight)
			t.take(e.request, func(c *candidate, before int32) {
				if before == 0 {
					edges.Push(c)
				} else {
					edges.Moved(c)
				}
			})
		}
	}
	return sum, nil
}

// Spread returns the bound of [Problem.Nearest] for another order of the requests, one that has those first that have little in
// common with each other: what a trace saves in an unlimited cache does not depend on the order in which it runs, so each
// order gives a bound for all. A request that many others resemble comes late then, and counts once, where in another order each of
// the others counts. The next request is always one that has least in common with those before it. It is below Nearest on all
// traces seen, which is not certain, so take the smaller one.
//
// Time and memory are those of [Problem.SpanningTree].
func (p *Problem) Spread(ctx context.Context) (int, error) {
	t := newTaken(p)
	left := queue.New(func(a, b *candidate) bool { // what has least in common with those taken, then with all
		switch {
		case a.weight != b.weight:
			return a.weight < b.weight
		case a.shared != b.shared:
			return a.shared < b.shared
		}
		return a.request < b.request
	}, placeOf)
	for i, set := range p.sets {
		c := &t.all[i]
		for _, b := range set {
			c.shared += int(p.weight[b]) * (len(t.of(b)) - 1)
		}
		left.Push(c)
	}
	sum := 0
	for n := range p.sets {
		if err := interrupted(ctx, n); err != nil {
			return 0, err
		}
		c := left.Top()
		left.Remove(c)
		sum += int(c.weight)
		t.take(c.request, func(c *candidate, _ int32) { left.Moved(c) })
	}
	return sum, nil
}

// candidate is a request that was not taken yet.
type candidate struct {
	weight  int32 // most that it has in common with one that was taken
	shared  int   // weight in common with all others together
	request int32
	place   int // in a queue
}

func placeOf(c *candidate) *int { return &c.place }

// taken keeps, while requests are taken one by one, how near the others have come to them.
type taken struct {
	*Problem
	postings
	all    []candidate // by request
	done   []bool
	common []int32 // with the request that is taken
	open   []int32 // requests with some in common
}

func newTaken(p *Problem) *taken {
	n := len(p.sets)
	t := &taken{Problem: p, postings: p.postings(), all: make([]candidate, n), done: make([]bool, n), common: make([]int32, n)}
	for i := range t.all {
		t.all[i].request = int32(i)
	}
	return t
}

// take takes a request and calls nearer for each of the others that has more in common with it than before with any.
func (t *taken) take(i int32, nearer func(c *candidate, before int32)) {
	t.done[i] = true
	for _, b := range t.sets[i] {
		w := t.weight[b]
		for _, j := range t.of(b) {
			if t.done[j] {
				continue
			}
			if t.common[j] == 0 {
				t.open = append(t.open, j)
			}
			t.common[j] += w
		}
	}
	for _, j := range t.open {
		if c, before := &t.all[j], t.all[j].weight; t.common[j] > before {
			c.weight = t.common[j]
			nearer(c, before)
		}
		t.common[j] = 0
	}
	t.open = t.open[:0]
}
