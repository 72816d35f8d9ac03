package kvstore

import (
	"slices"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// Sequence is the tokens of one request and the pages that hold what was computed of them.
type Sequence struct {
	store    *Store
	salt     string
	root     Hash
	prefix   int // pages of a Prefix in front
	tokens   []int32
	pages    []*page
	memory   []gpu.Page // of pages
	hashes   []Hash     // of the first full pages
	computed int        // tokens
	cached   int        // of them, those that the sequence did not compute
	private  bool       // pages that were not found are never found by others
}

// Begin makes a sequence with pages for all tokens, and looks up the first ones, looked in number. It returns nil, and changes nothing, if
// there is no room now; a sequence that needs more pages than Capacity will never have room. tokens is not kept.
//
// The page with the last of the tokens that are looked up is never found: that one's logits are needed.
//
// With a prefix the first tokens, as many as it has, are placeholders; at least one must follow, and all of them are looked up. The tier
// has nothing of such a sequence.
func (s *Store) Begin(x *Prefix, tokens []int32, looked int, salt string) *Sequence {
	need, findable := pagesFor(len(tokens)), max(0, (looked-1)/PageTokens)
	q := &Sequence{store: s, salt: x.Salt(salt), root: x.root(salt), hashes: make([]Hash, 0, need)}
	first := x.Tokens() / PageTokens
	for range first {
		q.hashes = append(q.hashes, q.root)
	}
	found, unused := first, 0
	for ; found < findable; found++ {
		q.hash(found, tokens)
		p := s.index[q.hashes[found]]
		if p == nil {
			break
		}
		if p.refs == 0 {
			unused++
		}
	}
	if !s.Room(need - found + unused) {
		return nil
	}
	q.tokens = append(make([]int32, 0, len(tokens)+PageTokens), tokens...)
	q.pages, q.memory = make([]*page, 0, need+1), make([]gpu.Page, 0, need+1)
	q.behind(x)
	for _, hash := range q.hashes[first:found] {
		p := s.index[hash]
		s.share(p)
		q.add(p)
	}
	for q.computed/PageTokens < found && q.pages[q.computed/PageTokens].computed {
		q.pass()
	}
	below := s.tier != nil && first == 0
	for i := found; i < need; i++ {
		p := s.take()
		p.owner = q
		if i < findable { // others may wait for it; the page before it is in the index, and none behind one that is not
			q.hash(i, tokens)
			s.enter(p, q.hashes[i])
			if below = below && s.tier.Has(q.id(i)); below {
				stored := q.stored(i)
				p.owner, p.loading, p.unreported = nil, true, &stored
				s.loads = append(s.loads, q.id(i))
			}
		}
		q.add(p)
	}
	s.stats.Queried += int64(looked)
	return q
}

func pagesFor(tokens int) int { return (tokens + PageTokens - 1) / PageTokens }

// hash makes sure that the hashes of the pages up to page i of tokens are known.
func (q *Sequence) hash(i int, tokens []int32) {
	for j := len(q.hashes); j <= i; j++ {
		parent := q.root
		if j > 0 {
			parent = q.hashes[j-1]
		}
		q.hashes = append(q.hashes, chain(parent, tokens[j*PageTokens:(j+1)*PageTokens]))
	}
}

// id names page i, whose hash is known.
func (q *Sequence) id(i int) ID { return ID{Salt: q.root, Page: q.hashes[i]} }

func (q *Sequence) add(p *page) {
	q.pages = append(q.pages, p)
	q.memory = append(q.memory, p.memory)
}

// Tokens returns the prompt and what was appended. It is valid until the next Append.
func (q *Sequence) Tokens() []int32 { return q.tokens }

// Pages returns the memory of the sequence's pages in order. It is valid until the store or a sequence of it is changed.
func (q *Sequence) Pages() []gpu.Page { return q.memory }

// Computed returns how many of the first tokens are computed.
func (q *Sequence) Computed() int { return q.computed }

// Cached returns how many tokens the sequence did not compute, since they were there or others computed them.
func (q *Sequence) Cached() int { return q.cached }

// Ready returns how many tokens, from Computed on, the sequence may compute now: at most limit. It is 0 while another
// sequence computes the next page, or it is loaded. Pages that others have computed meanwhile, or that were loaded, are passed over.
func (q *Sequence) Ready(limit int) int {
	for q.computed < len(q.tokens) && q.pages[q.computed/PageTokens].computed {
		q.pass()
	}
	n := 0
	for i := q.computed / PageTokens; i < len(q.pages) && n < limit; i++ {
		p := q.pages[i]
		if p.owner == nil && !p.computed && !p.loading {
			p.owner = q // the sequence that wanted to compute it has gone
		}
		if p.owner != q {
			break
		}
		n = min((i+1)*PageTokens, len(q.tokens)) - q.computed
	}
	return min(n, limit)
}

// pass takes what lacks of the next page, which is computed, for cached.
func (q *Sequence) pass() {
	p, n := q.pages[q.computed/PageTokens], PageTokens-q.computed%PageTokens
	q.computed += n
	q.cached += n
	q.store.stats.Hits += int64(n)
	if p.unreported != nil {
		if q.store.tier.Has(ID{q.root, p.hash}) { // it may have gone since it was loaded
			q.store.reportBelow(p.hash, *p.unreported)
		}
		q.store.events = append(q.store.events, *p.unreported)
		p.unreported = nil
	}
}

// Advance notes that n more tokens were computed. Full pages can be found by others from now on.
func (q *Sequence) Advance(n int) {
	first := q.computed / PageTokens
	q.computed += n
	for i := first; (i+1)*PageTokens <= q.computed; i++ {
		q.full(i)
	}
}

// BeginPrivate makes a sequence whose keys and values need not be those of its tokens: of the first shared tokens whole pages that are
// computed are taken from the cache, and all others are the sequence's alone. They are never found, saved or reported. It returns nil, and
// changes nothing, if there is no room now. tokens is not kept.
func (s *Store) BeginPrivate(tokens []int32, shared int, salt string) *Sequence {
	q, unused := s.find(tokens, shared, salt)
	need := pagesFor(len(tokens))
	if !s.Room(need - len(q.hashes) + unused) {
		return nil
	}
	q.private = true
	q.take()
	q.tokens = append(make([]int32, 0, len(tokens)+PageTokens), tokens...)
	for len(q.pages) < need {
		p := s.take()
		p.owner = q
		q.add(p)
	}
	s.stats.Queried += int64(len(tokens))
	s.stats.Hits += int64(q.cached)
	return q
}

// Attach makes a sequence of those of the first tokens' whole pages that are computed, so that they stay while it is open. It returns
// nil, and changes nothing, if there is no room now: pages that no sequence uses count as free. Nothing may be added to it.
func (s *Store) Attach(tokens []int32, salt string) *Sequence {
	q, unused := s.find(tokens, len(tokens), salt)
	if !s.Room(unused) {
		return nil
	}
	q.private = true
	q.take()
	return q
}

// find looks up the whole pages of the first tokens that are computed: their hashes, and how many no sequence uses.
func (s *Store) find(tokens []int32, first int, salt string) (q *Sequence, unused int) {
	q = &Sequence{store: s, salt: salt, root: root(salt)}
	for i := range first / PageTokens {
		q.hash(i, tokens)
		p := s.index[q.hashes[i]]
		if p == nil || !p.computed || p.unreported != nil {
			q.hashes = q.hashes[:i]
			break
		}
		if p.refs == 0 {
			unused++
		}
	}
	q.tokens = tokens[:len(q.hashes)*PageTokens]
	return q, unused
}

// take shares the pages that were found.
func (q *Sequence) take() {
	for _, hash := range q.hashes {
		p := q.store.index[hash]
		q.store.share(p)
		q.add(p)
	}
	q.computed = len(q.tokens)
	q.cached = q.computed
}

// Assembled notes that the first tokens of a private sequence are in place, and that n of them were computed for it.
func (q *Sequence) Assembled(tokens, n int) {
	hits := tokens - q.computed - n
	q.cached += hits
	q.store.stats.Hits += int64(hits)
	q.Advance(tokens - q.computed)
}

// full takes a page whose tokens are all computed. What is behind a page that is not in the index stays out of it too,
// and so does a page from before a Clear: others may have it behind a page that is out.
func (q *Sequence) full(i int) {
	p := q.pages[i]
	if p.computed {
		return // others came to the same tokens meanwhile
	}
	p.computed, p.owner = true, nil
	if q.private || i > q.prefix && !q.pages[i-1].indexed {
		return
	}
	q.hash(i, q.tokens)
	there := q.store.index[q.hashes[i]]
	switch {
	case there == nil && p.clears != q.store.clears:
		return
	case there == nil:
		q.store.enter(p, q.hashes[i])
	case there != p:
		q.replace(i, there)
		return
	}
	q.enter(i)
}

// enter reports page i, which can be found from now on.
func (q *Sequence) enter(i int) {
	stored := q.stored(i)
	q.store.events = append(q.store.events, stored)
	if q.prefix == 0 {
		q.store.save(q.pages[i], q.id(i), stored)
	}
}

// replace gives a page back for one with the same tokens. If that one is not computed yet, it gets what was computed here.
func (q *Sequence) replace(i int, by *page) {
	if !by.computed {
		if q.store.pool.Copy(by.memory, q.pages[i].memory) != nil {
			return // whoever waits for it computes it; this one stays out of the index
		}
		by.computed, by.owner, by.loading, by.unreported = true, nil, false, nil
		defer q.enter(i)
	}
	q.store.release(q.pages[i], q)
	q.store.share(by)
	q.pages[i], q.memory[i] = by, by.memory
}

// stored is the event of a page that was stored.
func (q *Sequence) stored(i int) kvevents.Event {
	tokens := make([]int, 0, PageTokens)
	for _, t := range q.tokens[i*PageTokens : (i+1)*PageTokens] {
		tokens = append(tokens, int(t))
	}
	event := kvevents.Event{Kind: kvevents.Stored, Hashes: []kvevents.Hash{q.hashes[i].event()}, BlockSize: PageTokens, Tokens: tokens}
	if i > q.prefix {
		event.Parent = q.hashes[i-1].event()
	} else if q.salt != "" {
		event.Salt = []byte(q.salt)
	}
	return event
}

// Append adds a generated token. It returns false, and adds nothing, if that needs a page and there is none.
func (q *Sequence) Append(token int32) bool {
	if len(q.tokens) == len(q.pages)*PageTokens {
		if !q.store.Room(1) {
			return false
		}
		p := q.store.take()
		p.owner = q
		q.add(p)
	}
	q.tokens = append(q.tokens, token)
	return true
}

// Close gives the sequence's pages back, the last one first.
func (q *Sequence) Close() {
	for _, p := range slices.Backward(q.pages) {
		q.store.release(p, q)
	}
	q.pages, q.memory = nil, nil
}
