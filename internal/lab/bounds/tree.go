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
func (p *Problem) SpanningTree(ctx context.Context) (int, error) {
	t := tree{Problem: p, postings: p.postings(), best: make([]int32, len(p.sets)), done: make([]bool, len(p.sets)), common: make([]int32, len(p.sets))}
	sum, n := 0, 0
	for root := range p.sets {
		if t.done[root] {
			continue
		}
		t.queue = append(t.queue[:0], edge{0, int32(root)})
		for len(t.queue) > 0 {
			e := heap.Pop(&t.queue).(edge)
			if t.done[e.to] || e.weight < t.best[e.to] {
				continue
			}
			if err := interrupted(ctx, n); err != nil {
				return 0, err
			}
			n++
			sum += int(e.weight)
			t.reach(e.to)
		}
	}
	return sum, nil
}

// tree grows a spanning tree (Prim). Edges are made when one of their ends is reached.
type tree struct {
	*Problem
	postings
	best   []int32 // of each request: heaviest edge to the tree so far
	done   []bool
	common []int32
	open   []int32
	queue  queue
}

func (t *tree) reach(i int32) {
	t.done[i] = true
	for _, b := range t.sets[i] {
		w := t.weight[b]
		for _, j := range t.of(b) {
			if t.common[j] == 0 {
				t.open = append(t.open, j)
			}
			t.common[j] += w
		}
	}
	for _, j := range t.open {
		if !t.done[j] && t.common[j] > t.best[j] {
			t.best[j] = t.common[j]
			heap.Push(&t.queue, edge{t.common[j], j})
		}
		t.common[j] = 0
	}
	t.open = t.open[:0]
}

type edge struct{ weight, to int32 }

// queue is a heap of edges, the heaviest first.
type queue []edge

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].weight > q[j].weight }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(edge)) }
func (q *queue) Pop() any {
	e := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return e
}
