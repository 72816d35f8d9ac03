package residency

import "math"

// slot is the number of a request; 0 is none.
type slot uint32

// request needs the same memory however long its prompt is.
type request struct {
	id      string
	end     ref  // node of its last full block; root if it has none or they are not known yet
	at      ref  // node in whose list it is, 0: in none
	next    slot // in the node's list
	prev    slot
	older   slot // in order of registration
	newer   slot
	blocks  int32 // resident, from the beginning
	before  int32 // the same before the history was asked for once more
	size    int32 // tokens of a block
	length  int32 // tokens of the prompt
	flags   uint8
	waiting *prompt // until the engine's way of cutting prompts is known
}

const (
	ended  uint8 = 1 << iota // nothing more will be stored for it
	served                   // it was answered
	seen                     // some of its blocks were resident since it was registered
)

func (r *request) is(flag uint8) bool { return r.flags&flag != 0 }

// prompt is what must be kept of a request whose blocks cannot be named yet. It is never changed: the caches of a group
// share it.
type prompt struct {
	tokens []uint32
	wide   []int // instead, if a number does not fit
	extra  Key
}

func keep(tokens []int, extra Key) *prompt {
	p := &prompt{tokens: make([]uint32, len(tokens)), extra: extra}
	for i, t := range tokens {
		if t < 0 || uint64(t) > math.MaxUint32 {
			return &prompt{wide: append([]int(nil), tokens...), extra: extra}
		}
		p.tokens[i] = uint32(t)
	}
	return p
}

func (p *prompt) len() int { return len(p.tokens) + len(p.wide) }

func (p *prompt) all() []int {
	if p.wide != nil {
		return p.wide
	}
	tokens := make([]int, len(p.tokens))
	for i, t := range p.tokens {
		tokens[i] = int(t)
	}
	return tokens
}

// requests holds the registered ones.
type requests struct {
	slots          []request // [0] is unused
	free           slot
	byID           map[string]slot
	oldest, newest slot
}

func newRequests() requests {
	return requests{slots: make([]request, 1), byID: make(map[string]slot)}
}

func (q *requests) at(s slot) *request { return &q.slots[s] }

func (q *requests) add(id string) slot {
	s := q.free
	if s != 0 {
		q.free = q.slots[s].next
	} else {
		s = slot(len(q.slots))
		q.slots = append(q.slots, request{})
	}
	q.slots[s] = request{id: id, end: root, older: q.newest}
	if q.newest != 0 {
		q.at(q.newest).newer = s
	} else {
		q.oldest = s
	}
	q.newest = s
	q.byID[id] = s
	return s
}

// remove forgets a request that is in no list.
func (q *requests) remove(s slot) {
	r := q.at(s)
	if r.older != 0 {
		q.at(r.older).newer = r.newer
	} else {
		q.oldest = r.newer
	}
	if r.newer != 0 {
		q.at(r.newer).older = r.older
	} else {
		q.newest = r.older
	}
	delete(q.byID, r.id)
	*r = request{next: q.free}
	q.free = s
}
