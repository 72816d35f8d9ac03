package bounds

import (
	"container/heap"
	"context"
)

// Spread returns the bound of [Problem.Nearest] for another order of the requests, one that has those first that have little in
// common with each other: what a trace saves in an unlimited cache does not depend on the order in which it runs, so each
// order gives a bound for all. A request that many others resemble comes late then, and counts once, where in another order each of
// the others counts. The next request is always one that has least in common with those before it. It is below Nearest on all
// traces seen, which is not certain, so take the smaller one.
//
// Time and memory are those of [Problem.SpanningTree].
func (p *Problem) Spread(ctx context.Context) (int, error) {
	s := spread{
		Problem: p, postings: p.postings(), best: make([]int32, len(p.sets)), done: make([]bool, len(p.sets)), common: make([]int32, len(p.sets)),
		shared: make([]int, len(p.sets)),
	}
	for i, set := range p.sets {
		for _, b := range set {
			s.shared[i] += int(p.weight[b]) * (len(s.of(b)) - 1)
		}
		s.queue = append(s.queue, candidate{0, s.shared[i], int32(i)})
	}
	heap.Init(&s.queue)
	sum, n := 0, 0
	for len(s.queue) > 0 {
		c := heap.Pop(&s.queue).(candidate)
		if c.weight < s.best[c.request] { // it has come nearer since
			c.weight = s.best[c.request]
			heap.Push(&s.queue, c)
			continue
		}
		if err := interrupted(ctx, n); err != nil {
			return 0, err
		}
		n++
		sum += int(c.weight)
		s.take(c.request)
	}
	return sum, nil
}

// spread takes requests one by one.
type spread struct {
	*Problem
	postings
	best   []int32 // of each request: most that it has in common with one that was taken
	done   []bool
	shared []int   // of each request: weight that it has in common with all others together
	common []int32 // with the request that is taken
	open   []int32 // requests with some in common
	queue  candidates
}

func (s *spread) take(i int32) {
	s.done[i] = true
	for _, b := range s.sets[i] {
		for _, j := range s.of(b) {
			if s.done[j] {
				continue
			}
			if s.common[j] == 0 {
				s.open = append(s.open, j)
			}
			s.common[j] += s.weight[b]
		}
	}
	for _, j := range s.open {
		s.best[j] = max(s.best[j], s.common[j])
		s.common[j] = 0
	}
	s.open = s.open[:0]
}

// candidate is a request that was not taken yet. Its weight may be too small by now.
type candidate struct {
	weight  int32
	shared  int
	request int32
}

// candidates is a heap: first what has least in common with those that were taken, then with all.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	a, b := c[i], c[j]
	switch {
	case a.weight != b.weight:
		return a.weight < b.weight
	case a.shared != b.shared:
		return a.shared < b.shared
	}
	return a.request < b.request
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}
