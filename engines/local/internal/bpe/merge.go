package bpe

import "container/heap"

// merge is what two neighbouring tokens become, and how early in the list of merges.
type merge struct {
	rank, id int32
}

// pair is the key of two neighbouring tokens.
func pair(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// noRank is the rank of neighbours that are not merged.
const noRank = int32(1<<31 - 1)

// shortWord is up to how many tokens a word is merged by looking through all of its pairs each time, which is faster
// than a heap as long as they are few.
const shortWord = 48

// scratch is the memory that encoding words needs, kept from word to word.
type scratch struct {
	ids   []int32
	ranks []merge
	list  []node
	queue queue
}

// merge applies the merges to s.ids until none applies: always that of the lowest rank, of several the leftmost.
func (s *scratch) merge(merges map[uint64]merge) {
	if len(s.ids) <= shortWord {
		s.mergeShort(merges)
		return
	}
	s.mergeLong(merges)
}

func (s *scratch) mergeShort(merges map[uint64]merge) {
	look := func(i int) merge {
		if i+1 < len(s.ids) {
			if m, ok := merges[pair(s.ids[i], s.ids[i+1])]; ok {
				return m
			}
		}
		return merge{rank: noRank}
	}
	s.ranks = s.ranks[:0]
	for i := range s.ids {
		s.ranks = append(s.ranks, look(i))
	}
	for {
		best := 0
		for i, m := range s.ranks {
			if m.rank < s.ranks[best].rank {
				best = i
			}
		}
		if len(s.ranks) == 0 || s.ranks[best].rank == noRank {
			return
		}
		s.ids[best] = s.ranks[best].id
		s.ids = append(s.ids[:best+1], s.ids[best+2:]...)
		s.ranks = append(s.ranks[:best+1], s.ranks[best+2:]...)
		s.ranks[best] = look(best)
		if best > 0 {
			s.ranks[best-1] = look(best - 1)
		}
	}
}

// node is a token of a long word; prev and next are places in the list, -1 at the ends. id is -1 if it was merged away.
type node struct{ id, prev, next int32 }

// candidate is a merge that may be done, if its two tokens are still there.
type candidate struct {
	merge
	at, left, right int32
}

// queue is a heap of candidates, the next to be done on top.
type queue []candidate

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].rank != q[j].rank {
		return q[i].rank < q[j].rank
	}
	return q[i].at < q[j].at
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(candidate)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// mergeLong does the same as mergeShort in n log n steps.
func (s *scratch) mergeLong(merges map[uint64]merge) {
	s.list, s.queue = s.list[:0], s.queue[:0]
	for i, id := range s.ids {
		s.list = append(s.list, node{id, int32(i - 1), int32(i + 1)})
	}
	s.list[len(s.list)-1].next = -1
	offer := func(at int32) (candidate, bool) {
		next := s.list[at].next
		if next < 0 {
			return candidate{}, false
		}
		left, right := s.list[at].id, s.list[next].id
		m, ok := merges[pair(left, right)]
		return candidate{m, at, left, right}, ok
	}
	for i := range s.list {
		if c, ok := offer(int32(i)); ok {
			s.queue = append(s.queue, c)
		}
	}
	heap.Init(&s.queue)
	for len(s.queue) > 0 {
		c := heap.Pop(&s.queue).(candidate)
		if !s.join(c) {
			continue
		}
		for _, at := range [2]int32{s.list[c.at].prev, c.at} {
			if at < 0 {
				continue
			}
			if next, ok := offer(at); ok {
				heap.Push(&s.queue, next)
			}
		}
	}
	s.ids = s.ids[:0]
	for at := int32(0); at >= 0; at = s.list[at].next {
		s.ids = append(s.ids, s.list[at].id)
	}
}

// join does a merge, or returns false if one of its tokens has become another.
func (s *scratch) join(c candidate) bool {
	n := &s.list[c.at]
	if n.id != c.left || n.next < 0 || s.list[n.next].id != c.right {
		return false
	}
	gone := &s.list[n.next]
	n.id, n.next = c.id, gone.next
	gone.id = -1
	if n.next >= 0 {
		s.list[n.next].prev = c.at
	}
	return true
}
