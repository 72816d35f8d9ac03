package workload

import (
	"iter"
	"slices"
)

// listFactor times the largest request is how many blocks the list of a topic has at least, if there are so many.
const listFactor = 3

// popular is the number of blocks that stand in every topic's list of a tenant, at most one of popularShare blocks.
const (
	popular      = 8
	popularShare = 100
)

// topics knows which blocks belong to which topic. Topics stand in a ring, one for each tenant, and neighbours have
// much in common: the list of a topic begins with its own blocks, the central ones first; if these are few, blocks
// of its neighbours follow; and some blocks of the tenant stand in all of its lists.
type topics struct {
	opt    *Options
	tenant []int32   // of each topic
	lists  [][]int32 // made when needed
	born   []int32   // the request from which on each block exists; nil if all do from the start
}

func newTopics(opt *Options) *topics {
	t := &topics{opt: opt, tenant: make([]int32, opt.Topics), lists: make([][]int32, opt.Topics)}
	for a := range opt.Tenants {
		for i, end := opt.tenantTopics(a); i < end; i++ {
			t.tenant[i] = int32(a)
		}
	}
	if !opt.Growing {
		return t
	}
	t.born = make([]int32, opt.Pool)
	for i := range opt.Topics {
		lo, hi := opt.topicBlocks(i)
		later := hi - lo - opt.kMax()
		for n, p := range newRandom(opt.Seed, forBirth, i).permutation(hi - lo) {
			if late := n - opt.kMax() + 1; late > 0 {
				t.born[lo+int(p)] = int32(part(opt.Contexts, late, later+1))
			}
		}
	}
	return t
}

// longest returns how long a list can be.
func (t *topics) longest() int {
	own := (t.opt.Pool+t.opt.Topics-1)/t.opt.Topics + popular
	return min(t.opt.Pool, max(own, listFactor*t.opt.kMax()+popular))
}

// list returns the blocks of a topic, the most central one first.
func (t *topics) list(topic int) []int32 {
	if t.lists[topic] == nil {
		t.lists[topic] = t.newList(topic)
	}
	return t.lists[topic]
}

func (t *topics) newList(topic int) []int32 {
	r := newRandom(t.opt.Seed, forTopic, topic)
	list := t.own(r, topic)
	if t.opt.Growing {
		return list
	}
	want := listFactor * t.opt.kMax()
	for near := range t.neighbours(topic) {
		if len(list) >= want {
			break
		}
		theirs := t.own(r, near)
		list = append(list, theirs[:min(len(theirs), want-len(list))]...)
	}
	for _, b := range t.popular(int(t.tenant[topic])) {
		list = insert(list, len(list)/4+r.Below(len(list)-len(list)/4+1), b)
	}
	return list
}

// own returns a topic's own blocks in random order.
func (t *topics) own(r random, topic int) []int32 {
	lo, hi := t.opt.topicBlocks(topic)
	p := r.permutation(hi - lo)
	for i := range p {
		p[i] += int32(lo)
	}
	return p
}

// popular returns the blocks that all lists of a tenant have, evenly spread over its pool.
func (t *topics) popular(tenant int) []int32 {
	lo, hi := t.opt.tenantBlocks(tenant)
	out := make([]int32, min(popular, (hi-lo)/popularShare))
	for i := range out {
		out[i] = int32(lo + part(hi-lo, i, len(out)))
	}
	return out
}

// neighbours walks the other topics of the tenant, the nearest first.
func (t *topics) neighbours(topic int) iter.Seq[int] {
	return func(yield func(int) bool) {
		first, end := t.opt.tenantTopics(int(t.tenant[topic]))
		n := end - first
		for d := 1; d <= n/2; d++ {
			if !yield(first + (topic-first+d)%n) {
				return
			}
			if 2*d < n && !yield(first+(topic-first+n-d)%n) {
				return
			}
		}
	}
}

// insert puts b at place i, or moves it there if it stands later. Where it stands earlier, it stays.
func insert(list []int32, i int, b int32) []int32 {
	switch j := slices.Index(list, b); {
	case j < 0:
		return slices.Insert(list, i, b)
	case j > i:
		return slices.Insert(slices.Delete(list, j, j+1), i, b)
	}
	return list
}
