package stabilise

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// nextSum goes on from a with b.
func nextSum(a, b sum) sum {
	var buf [32]byte
	binary.LittleEndian.PutUint64(buf[0:], a.Lo)
	binary.LittleEndian.PutUint64(buf[8:], a.Hi)
	binary.LittleEndian.PutUint64(buf[16:], b.Lo)
	binary.LittleEndian.PutUint64(buf[24:], b.Hi)
	return xxh3.Hash128(buf[:])
}

// piece is a text that has left the system text.
type piece struct {
	slot  string // which text of a request it is: the latest of a slot stands for those before it
	text  string
	clock bool // it says what time it is, and nothing of the user
}

// link is what was sent behind one message, and what stands before it. It is never changed, but for users: what a request has sent in its
// earlier turns stays so in those that go on from it.
type link struct {
	chain   sum // of the messages up to and including this one
	message int
	pieces  []piece
	before  *link
	users   int // variants and links that point to it; guarded by table.mu
}

// Bytes that are taken beside texts and names, about.
const (
	linkBytes    = 96
	entryBytes   = 152 // with its place in the table
	variantBytes = 32
)

func (l *link) weight() int {
	n := linkBytes
	for _, p := range l.pieces {
		n += 48 + len(p.slot) + len(p.text)
	}
	return n
}

// variant is a request that ended with some messages.
type variant struct {
	asked sum // the texts that left its system text
	link  *link
}

// entry is what is remembered of requests that ended with the same messages, the latest last. It is replaced and never changed.
type entry struct {
	variants []variant
	owner    string // the name of its conversation
}

// maxVariants bounds how many requests that end alike are distinguished, so that each is sent again as it was sent before.
const maxVariants = 4

// weigh returns what an entry takes without its links, which several entries may have.
func weigh(_ sum, e *entry) int { return entryBytes + len(e.owner) + variantBytes*len(e.variants) }

// order is the order of a conversation's tools. It is replaced and never changed.
type order struct {
	names []string
	owner string
}

func weighOrder(_ sum, o *order) int {
	n := 200 + len(o.owner)
	for _, name := range o.names {
		n += 16 + len(name)
	}
	return n
}

// table is what is remembered of one tenant: as long as the budget has room, what was used least recently goes first. Safe for concurrent
// use.
type table struct {
	budget *budget.Budget
	parts  [2]*budget.Part

	mu     sync.Mutex
	turns  *lru.Cache[sum, *entry] // guarded by mu
	orders *lru.Cache[sum, *order] // guarded by mu
}

func newTable(b *budget.Budget, tenant string) *table {
	t := &table{budget: b}
	t.parts[0] = b.Part(tenant, "stabiliser", t.dropTurn)
	t.parts[1] = b.Part(tenant, "stabiliser", t.dropOrder)
	t.turns = lru.With(lru.Options[sum, *entry]{Weigh: weigh, Changed: t.parts[0].Add})
	t.orders = lru.With(lru.Options[sum, *order]{Weigh: weighOrder, Changed: t.parts[1].Add})
	return t
}

// dropTurn and dropOrder are for the budget.
func (t *table) dropTurn() (bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, e, ok := t.turns.DropOldest()
	if !ok {
		return 0
	}
	return weigh(k, e) + t.releaseAll(e)
}

func (t *table) dropOrder() (bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k, o, ok := t.orders.DropOldest(); ok {
		return weighOrder(k, o)
	}
	return 0
}

// hold notes that a variant points to a link, and counts what is new of it and of those before it. The lock is held.
func (t *table) hold(l *link) {
	bytes := 0
	for ; l != nil; l = l.before {
		if l.users++; l.users > 1 {
			break
		}
		bytes += l.weight()
	}
	t.parts[0].Add(bytes)
}

// release notes that a variant does not point to a link any more, and returns the bytes of those that nothing points to now. The lock is
// held.
func (t *table) release(l *link) (bytes int) {
	for ; l != nil; l = l.before {
		if l.users--; l.users > 0 {
			break
		}
		bytes += l.weight()
	}
	t.parts[0].Add(-bytes)
	return bytes
}

// releaseAll releases the links of an entry that is not in the table any more. The lock is held.
func (t *table) releaseAll(e *entry) (bytes int) {
	for _, v := range e.variants {
		bytes += t.release(v.link)
	}
	return bytes
}

func (t *table) close() {
	for _, p := range t.parts {
		p.Close()
	}
}

// forget drops what belongs to a name.
func (t *table) forget(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := false
	for k, e := range t.turns.All() {
		if e.owner == name {
			found = true
			t.turns.Delete(k)
			t.releaseAll(e)
		}
	}
	for k, o := range t.orders.All() {
		if o.owner == name {
			found = true
			t.orders.Delete(k)
		}
	}
	return found
}

// turn is a request as it is remembered.
type turn struct {
	owner  string
	named  bool  // its conversation, or its user, has a name: all of its beginning is the same person's
	chains []sum // of its messages; the last is the one that its texts go behind
	pieces []piece
	// closed reports whether nothing may stand behind a message but the last: it is the first of results that belong together.
	closed func(message int) bool
}

// sent returns what is sent behind the messages of a request, the last first, and remembers it. O(messages).
func (t *table) sent(q *turn) (last *link) {
	defer t.budget.Settle() // without the lock
	end := q.chains[len(q.chains)-1]
	asked := xxh3.Uint128{}
	for _, p := range q.pieces {
		asked = nextSum(asked, xxh3.HashString128(p.slot+"\x00"+p.text))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known, _ := t.turns.Get(end)
	if known != nil {
		for _, v := range known.variants {
			if v.asked == asked {
				t.touch(v.link)
				return v.link
			}
		}
	}
	before := t.before(q, known)
	l := &link{chain: end, message: len(q.chains) - 1, before: before, pieces: fresh(q.pieces, before)}
	if len(l.pieces) == 0 && before == nil && len(q.pieces) == 0 {
		return nil
	}
	t.hold(l)
	e := &entry{owner: q.owner, variants: []variant{{asked: asked, link: l}}}
	if known != nil {
		old := known.variants
		if len(old) == maxVariants {
			t.release(old[0].link)
			old = old[1:]
		}
		e.variants = append(slices.Clone(old), e.variants[0])
	}
	t.turns.Put(end, e)
	t.touch(before)
	return l
}

// touch marks all that a link stands behind as used after it, so that the ends of conversations are forgotten before their beginnings. The
// lock is held.
func (t *table) touch(l *link) {
	for ; l != nil; l = l.before {
		t.turns.Get(l.chain)
	}
}

// before returns what was sent in the earlier turns of a request. known are the requests that ended with the same messages. The lock is
// held.
func (t *table) before(q *turn, known *entry) (l *link) {
	if known != nil {
		l = known.variants[len(known.variants)-1].link.before
	} else {
		for i := len(q.chains) - 2; i >= 0 && l == nil; i-- {
			e, ok := t.turns.Peek(q.chains[i])
			if !ok {
				continue
			}
			l = e.variants[len(e.variants)-1].link
			if !q.named && len(e.variants) > 1 {
				l = l.before // which of them this one goes on from is not known
			}
			break
		}
	}
	own := map[string]bool{}
	for _, p := range q.pieces {
		own[p.text] = true
	}
	return l.only(func(l *link, p piece) bool {
		// Without a name all but the time may be another user's, if this request does not say it itself.
		return (q.named || p.clock || own[p.text]) && !q.closed(l.message)
	})
}

// only returns a link without the texts that may not be sent.
func (l *link) only(may func(*link, piece) bool) (out *link) {
	var all []*link
	last := -1 // of all, the earliest that loses something
	for ; l != nil; l = l.before {
		all = append(all, l)
		if slices.ContainsFunc(l.pieces, func(p piece) bool { return !may(l, p) }) {
			last = len(all) - 1
		}
	}
	for i, l := range slices.Backward(all) {
		if i > last { // it and all before it stay
			out = l
			continue
		}
		n := &link{chain: l.chain, message: l.message, before: out}
		for _, p := range l.pieces {
			if may(l, p) {
				n.pieces = append(n.pieces, p)
			}
		}
		out = n
	}
	return out
}

// fresh returns copies of the pieces whose text is not the latest of their slot.
func fresh(pieces []piece, before *link) []piece {
	if len(pieces) == 0 {
		return nil
	}
	latest := map[string]string{}
	for l := before; l != nil; l = l.before {
		for _, p := range l.pieces {
			if _, ok := latest[p.slot]; !ok {
				latest[p.slot] = p.text
			}
		}
	}
	var out []piece
	for _, p := range pieces {
		if text, ok := latest[p.slot]; !ok || text != p.text {
			out = append(out, piece{slot: p.slot, text: strings.Clone(p.text), clock: p.clock})
		}
	}
	return out
}

// maxTools bounds how many names of tools are remembered of a conversation.
const maxTools = 4096

// arrange returns the order of tools, whose names differ: those that the conversation had before, as they stood, then the others by name.
func (t *table) arrange(key sum, owner string, names []string) []int {
	defer t.budget.Settle() // without the lock
	t.mu.Lock()
	defer t.mu.Unlock()
	known, _ := t.orders.Get(key)
	place := map[string]int{}
	if known != nil {
		for i, n := range known.names {
			place[n] = i
		}
	}
	out := make([]int, len(names))
	for i := range out {
		out[i] = i
	}
	rank := func(i int) int {
		if at, ok := place[names[i]]; ok {
			return at
		}
		return len(place)
	}
	slices.SortStableFunc(out, func(a, b int) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(names[a], names[b])
	})
	var all []string
	if known != nil {
		all = slices.Clone(known.names)
	}
	old := len(all)
	for _, i := range out {
		if _, ok := place[names[i]]; !ok {
			all = append(all, strings.Clone(names[i]))
		}
	}
	if len(all) > old && len(all) <= maxTools {
		t.orders.Put(key, &order{names: all, owner: owner})
	}
	return out
}
