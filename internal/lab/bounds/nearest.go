package bounds

import (
	"cmp"
	"context"
	"slices"
)

// Nearest returns an upper bound on what any plan can save: the sum over all requests of the weight that each has in
// common with its nearest earlier request, the one with which it has most in common. A prefix is shared with one
// earlier request at a time, and what the whole trace saves in an unlimited cache does not depend on the order in which
// it runs; so this holds online and offline.
//
// The time is at worst the sum of the lengths of the requests' posting lists, some seconds for 100,000 requests of 15
// documents. It stops with the context's error.
func (p *Problem) Nearest(ctx context.Context) (int, error) {
	sum, _, err := p.nearest(ctx, 1)
	return sum, err
}

// MeanOverlap returns the mean share of a request's weight that its nearest earlier request has, too. Larger traces are
// sampled: at most sample requests are looked at, evenly spread, each against all earlier ones.
func (p *Problem) MeanOverlap(ctx context.Context, sample int) (float64, error) {
	step := max(1, (len(p.sets)+sample-1)/max(1, sample))
	_, shares, err := p.nearest(ctx, step)
	return shares / float64(max(1, (len(p.sets)+step-1)/step)), err
}

// nearest looks at every step-th request.
func (p *Problem) nearest(ctx context.Context, step int) (sum int, shares float64, err error) {
	s := newSearch(p)
	for i := (len(p.sets) - 1) % step; i < len(p.sets); i += step {
		if err := interrupted(ctx, i/step); err != nil {
			return 0, 0, err
		}
		best, all := s.before(i)
		sum += int(best)
		if all > 0 {
			shares += float64(best) / float64(all)
		}
	}
	return sum, shares, nil
}

// search finds the nearest earlier request.
type search struct {
	*Problem
	postings
	seen   []int   // of each block: length of its list before the request that is worked on
	next   int     // requests before it are in seen
	common []int32 // of each request: weight found in common so far
	open   []int32 // requests with some in common
	rank   []int32 // of each block of the request: 1 + its place in rare; else 0
	rare   []int32 // blocks of the request, those that few have first
}

func newSearch(p *Problem) *search {
	return &search{
		Problem: p, postings: p.postings(), seen: make([]int, len(p.weight)), common: make([]int32, len(p.sets)),
		rank: make([]int32, len(p.weight)),
	}
}

// firstGuesses is how many requests are compared block by block before any list is added up.
const firstGuesses = 16

// before returns the largest weight that request i has in common with an earlier one, and its whole weight. Requests
// must be asked for in rising order.
//
// Lists are added up from the shortest on, and only until a request that is in none of them so far cannot win any more;
// a few guesses make that early. Those that still can are compared block by block, once they are fewer than the next
// list has entries. So most of the long lists of popular blocks are never read.
func (s *search) before(i int) (best, all int32) {
	for ; s.next < i; s.next++ {
		for _, b := range s.sets[s.next] {
			s.seen[b]++
		}
	}
	s.rare = append(s.rare[:0], s.sets[i]...)
	slices.SortFunc(s.rare, func(a, b int32) int { return cmp.Or(cmp.Compare(s.seen[a], s.seen[b]), cmp.Compare(a, b)) })
	for n, b := range s.rare {
		all += s.weight[b]
		s.rank[b] = int32(n) + 1
	}
	best = s.guess()
	rest := all // weight of the lists not added up yet
	added := 0
	top := int32(0)
	for ; added < len(s.rare); added++ {
		b := s.rare[added]
		if best >= rest && s.seen[b] > len(s.open) {
			break
		}
		w := s.weight[b]
		for _, j := range s.of(b)[:s.seen[b]] {
			if s.common[j] == 0 {
				s.open = append(s.open, j)
			}
			s.common[j] += w
			top = max(top, s.common[j])
		}
		rest -= w
		best = max(best, top)
	}
	for _, j := range s.open { // the likely ones first
		if s.common[j] >= top-top/8 && s.common[j]+rest > best {
			best = max(best, s.common[j]+s.inCommon(j, added))
		}
	}
	for _, j := range s.open {
		if s.common[j]+rest > best {
			best = max(best, s.common[j]+s.inCommon(j, added))
		}
		s.common[j] = 0
	}
	s.open = s.open[:0]
	for _, b := range s.rare {
		s.rank[b] = 0
	}
	return best, all
}

// guess returns the best of some latest requests that have rare blocks of the request.
func (s *search) guess() (best int32) {
	left := firstGuesses
	for _, b := range s.rare {
		list := s.of(b)[:s.seen[b]]
		list = list[max(0, len(list)-left/4-1):]
		for _, j := range list {
			best = max(best, s.inCommon(j, 0))
		}
		if left -= len(list); left <= 0 {
			break
		}
	}
	return best
}

// inCommon returns what request j has in common, without the blocks before place from of rare.
func (s *search) inCommon(j int32, from int) (sum int32) {
	for _, b := range s.sets[j] {
		if int(s.rank[b]) > from {
			sum += s.weight[b]
		}
	}
	return sum
}
