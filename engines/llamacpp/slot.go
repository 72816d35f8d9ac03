package llamacpp

// slot is what is known of one of the server's slots.
type slot struct {
	tokens []token // those that are certain, from the first on; never changed in place
	length int     // how many the server has, at least len(tokens); -1: not known
	// other is what the slot may hold instead of tokens, nil: nothing. It is the prompt of a request that failed before
	// the server said that it had begun.
	other   []token
	private bool   // tokens are those of a request with a cache salt
	check   bool   // something used the server besides this engine: length must be asked for
	used    uint64 // when it was last released, by book.clock; 0: never
	lease   *lease // the request that runs on it
	// holders are the requests whose prefix lies here, longest stay first.
	holders []*holder
}

// share returns how many of the prompt's first tokens are certainly here.
func (s *slot) share(prompt []token) int {
	n := common(s.tokens, prompt)
	if s.other != nil {
		n = min(n, common(s.other, prompt))
	}
	return n
}

// exact reports whether share is the server's own number and not only a lower bound of it.
func (s *slot) exact(prompt []token, share int) bool {
	if s.other != nil || s.check {
		return false
	}
	return share < len(s.tokens) || share == len(prompt) || s.length == len(s.tokens)
}

// doubtful reports whether a look at the server could show more.
func (s *slot) doubtful() bool { return s.other != nil || s.check || s.length < 0 }

// set notes that the slot holds tokens, and length in all.
func (s *slot) set(tokens []token, length int) {
	s.tokens, s.length, s.other, s.check = tokens, length, nil, false
}

// settled returns the tokens that are certain once the slot's true length is known; ok is false if the slot holds
// something else than was believed, so that none are.
func (s *slot) settled(length int) (tokens []token, ok bool) {
	if s.other == nil {
		if length == s.length || s.length < 0 && length >= len(s.tokens) {
			return s.tokens, true
		}
		return nil, false
	}
	both := common(s.tokens, s.other)
	switch {
	case length <= both:
		return s.tokens[:length], true
	case length == s.length && length > len(s.other): // the failed request never began
		return s.tokens, true
	case s.length >= 0 && length != s.length: // it did
		return s.other[:min(length, len(s.other))], true
	}
	return s.tokens[:both], true
}

// choose returns the slot that the server takes for a prompt among those that are free if it is left the choice, -1 if none is:
// the one with the largest part of the prompt, if that is above similarity, else the one released longest ago. The
// arithmetic is the server's, in single precision; of equal slots the first wins by similarity and the last by age, as there.
func choose(slots []slot, prompt []token, similarity float32) int {
	best, part := -1, float32(0)
	if similarity > 0 && len(prompt) > 0 {
		for i := range slots {
			if slots[i].lease != nil {
				continue
			}
			p := float32(slots[i].share(prompt)) / float32(len(prompt))
			if p > part && p > similarity {
				best, part = i, p
			}
		}
	}
	if best >= 0 {
		return best
	}
	for i := range slots {
		if slots[i].lease == nil && (best < 0 || slots[i].used <= slots[best].used) {
			best = i
		}
	}
	return best
}

// token is a token ID of the server's vocabulary. unknown stands for one that was generated and not reported.
type token = int32

const unknown token = -1

// common returns the length of the common prefix.
func common(a, b []token) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// known returns the tokens before the first unknown one.
func known(tokens []token) []token {
	for i, t := range tokens {
		if t == unknown {
			return tokens[:i]
		}
	}
	return tokens
}
