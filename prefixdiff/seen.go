package prefixdiff

// Seen is what an engine showed of a request. The zero value says nothing.
type Seen struct {
	Replica   string // which replica answered
	BlockSize int    // tokens of a block of the cache; 0: not known
	Cached    int    // prompt tokens that were in the cache, if Known
	Known     bool
	Evicted   bool // the engine reported that it removed the prefix
}

// See says what the engine showed. It must be called before Insert if the replica is known, and may be called again before Explain.
func (r *Request) See(seen Seen) { r.seen = seen }

// Observe is Add with what the engine showed. Then a prefix that was the same, and yet not in the cache, is a finding, too, and a
// difference is none if the engine had the tokens all the same.
func (x *Index) Observe(p Prompt, seen Seen) (Finding, bool) {
	r := x.Prepare(p)
	r.See(seen)
	r.Insert()
	return r.Explain()
}

// leastMiss is the number of tokens from which a missing prefix is worth a word, as tokens are estimated here and counted there.
const leastMiss = 64

// reused reports whether the engine had what a difference would have cost.
func (s Seen) reused(d *difference) bool {
	return s.Known && s.Cached >= d.common+d.recurs*3/4 && d.recurs > 0
}

// missed says why a prefix that was the same as an earlier one was not in the cache: common tokens of request against. Without
// a sign of the engine nothing is said.
func (r *Request) missed(common int, against uint32) (Cause, bool) {
	s := r.seen
	if s.BlockSize > 0 && common >= leastHistory && common < s.BlockSize && (!s.Known || s.Cached == 0) {
		return BelowBlock, true
	}
	if !s.Known || common < leastMiss || s.Cached >= (common-s.BlockSize)/2 {
		return "", false
	}
	switch earlier := r.replicaOf(against); {
	case s.Evicted:
		return Evicted, true
	case s.Replica != "" && earlier != "" && s.Replica != earlier:
		return Replica, true
	}
	return Other, true
}

// replicaOf returns the replica that answered an earlier request; "": it is not known.
func (r *Request) replicaOf(n uint32) string {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	if s, ok := r.x.memory.prompt(n); ok {
		return s.replica
	}
	return ""
}
