package engines

import "math"

// window holds the prefill tokens of the last requests, by replica.
type window struct {
	size    int
	ring    []*share // oldest at next, once full
	next    int
	total   int
	sums    map[*replica]int
	prompts map[*replica]int // tokens of the prompts, computed or not
	kept    map[*replica]int // of these, what the replica's cache has not lost since
}

// share is what one request costs its replica.
type share struct {
	replica *replica
	tokens  int
	prompt  int // its length in tokens, and what the cache has kept of it
	kept    int
	out     bool // no longer in the window
}

// add notes a request and forgets the oldest, if the window is full.
func (w *window) add(r *replica, tokens, prompt int) *share {
	s := &share{replica: r, prompt: prompt, kept: prompt}
	w.prompts[r] += prompt
	w.kept[r] += prompt
	if len(w.ring) < w.size {
		w.ring = append(w.ring, s)
	} else {
		w.forget(w.ring[w.next])
		w.ring[w.next] = s
		w.next = (w.next + 1) % w.size
	}
	w.correct(s, tokens)
	return s
}

// correct sets what a request cost.
func (w *window) correct(s *share, tokens int) {
	if s.out {
		return
	}
	w.total += tokens - s.tokens
	w.sums[s.replica] += tokens - s.tokens
	s.tokens = tokens
}

func (w *window) forget(s *share) {
	w.correct(s, 0)
	w.keep(s, 0)
	w.prompts[s.replica] -= s.prompt
	s.out = true
}

// keep notes that the cache holds no more than the first tokens of a request's prompt.
func (w *window) keep(s *share, tokens int) {
	if lost := s.kept - max(tokens, 0); lost > 0 && !s.out {
		w.kept[s.replica] -= lost
		s.kept -= lost
	}
}

// lose notes that a replica's cache is empty: nothing that it had counts any more.
func (w *window) lose(r *replica) {
	for _, s := range w.ring {
		if s.replica == r {
			w.keep(s, 0)
			w.prompts[r] -= s.prompt
			s.prompt = 0
		}
	}
}

// keeps is the part of the prompts that a replica had lately which its cache still has, as far as it reports what it loses.
func (w *window) keeps(r *replica) float64 {
	if w.prompts[r] == 0 {
		return 1
	}
	return float64(w.kept[r]) / float64(w.prompts[r])
}

// reset begins anew, for replicas that are not those of before: one that has just come must not make up for what it
// had no part in.
func (w *window) reset() {
	for _, s := range w.ring {
		s.out = true
	}
	w.ring, w.next, w.total = w.ring[:0], 0, 0
	w.sums, w.prompts, w.kept = map[*replica]int{}, map[*replica]int{}, map[*replica]int{}
}

func (w *window) of(r *replica) int { return w.sums[r] }

// toCome estimates the tokens of the requests that are missing until the window is full: they cost as those so far.
func (w *window) toCome() float64 {
	n := len(w.ring)
	if n == 0 {
		return math.Inf(1)
	}
	return float64(w.size-n) / float64(n) * float64(w.total)
}

// price is what a token costs at one of n replicas: its share of prefill, with the mean as 1, as far as the window is filled,
// and no less than minPrice. What can go anywhere so goes where least was computed, and few replicas are ever full:
// a conversation whose replica is full has its whole history computed elsewhere.
func (w *window) price(r *replica, n int) float64 {
	if w.total == 0 {
		return 1
	}
	filled := float64(len(w.ring)) / float64(w.size)
	return max(1+filled*(float64(n*w.sums[r])/float64(w.total)-1), minPrice)
}

const minPrice = 0.3
