package bounds

import (
	"container/heap"
	"context"
)

// SpanningTree returns another upper bound on what any plan can save: the weight of the maximum spanning tree of the
// requests, where an edge weighs what its two ends have in common. It is never below Nearest, and is the bound that is
// known from the literature on offline orders.
//
// It takes twice the time of adding up all posting lists and stops with the context's error.
func (p *Problem) SpanningTree(ctx context.Context) (int, error) { // Prim's algorithm
	t := newTaken(p)
	edges := queue{before: func(a, b candidate) bool { return a.weight > b.weight }}
	sum, n := 0, 0
	for root := range p.sets {
		if t.done[root] {
			continue
		}
		edges.list = append(edges.list[:0], candidate{request: int32(root)})
		for len(edges.list) > 0 {
			e := heap.Pop(&edges).(candidate)
			if t.done[e.request] || e.weight < t.best[e.request] {
				continue
			}
			if err := interrupted(ctx, n); err != nil {
				return 0, err
			}
			n++
			sum += int(e.weight)
			t.take(e.request, func(j int32) { heap.Push(&edges, candidate{weight: t.best[j], request: j}) })
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
	left := queue{before: func(a, b candidate) bool { // what has least in common with those taken, then with all
		switch {
		case a.weight != b.weight:
			return a.weight < b.weight
		case a.shared != b.shared:
			return a.shared < b.shared
		}
		return a.request < b.request
	}}
	for i, set := range p.sets {
		c := candidate{request: int32(i)}
		for _, b := range set {
			c.shared += int(p.weight[b]) * (len(t.of(b)) - 1)
		}
		left.list = append(left.list, c)
	}
	heap.Init(&left)
	sum, n := 0, 0
	for len(left.list) > 0 {
		c := heap.Pop(&left).(candidate)
		if c.weight < t.best[c.request] { // it has come nearer since
			c.weight = t.best[c.request]
			heap.Push(&left, c)
			continue
		}
		if err := interrupted(ctx, n); err != nil {
			return 0, err
		}
		n++
		sum += int(c.weight)
		t.take(c.request, func(int32) {})
	}
	return sum, nil
}

// taken keeps, while requests are taken one by one, how near the others have come to them.
type taken struct {
	*Problem
	postings
	best   []int32 // of each request: most that it has in common with one that was taken
	done   []bool
	common []int32 // with the request that is taken
	open   []int32 // requests with some in common
}

func newTaken(p *Problem) *taken {
	n := len(p.sets)
	return &taken{Problem: p, postings: p.postings(), best: make([]int32, n), done: make([]bool, n), common: make([]int32, n)}
}

// take takes a request and calls nearer for each of the others that has more in common with it than with those before.
func (t *taken) take(i int32, nearer func(j int32)) {
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
		if t.common[j] > t.best[j] {
			t.best[j] = t.common[j]
			nearer(j)
		}
		t.common[j] = 0
	}
	t.open = t.open[:0]
}

// candidate is a request that was not taken yet. Its weight may be too small by now.
type candidate struct {
	weight  int32 // in common with one that was taken
	shared  int   // weight in common with all others together
	request int32
}

// queue is a heap of candidates.
type queue struct {
	before func(a, b candidate) bool
	list   []candidate
}

func (q *queue) Len() int           { return len(q.list) }
func (q *queue) Less(i, j int) bool { return q.before(q.list[i], q.list[j]) }
func (q *queue) Swap(i, j int)      { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *queue) Push(x any)         { q.list = append(q.list, x.(candidate)) }
func (q *queue) Pop() any {
	last := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	return last
}
