package conversation

import (
	"encoding/binary"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
)

// chain stands for everything that a client has sent up to and including one message of a conversation, for its tenant, its model
// and its settings.
type chain = xxh3.Uint128

// firstChain begins a conversation.
func firstChain(tenant, model, key string) chain {
	return xxh3.HashString128(tenant + "\x00" + model + "\x00" + key)
}

// aside returns the chain of a message that was forwarded as it came.
func aside(c chain) chain {
	c.Hi = ^c.Hi
	return c
}

// nextChain goes on with a message.
func nextChain(c chain, message Sum) chain {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], c.Lo)
	binary.LittleEndian.PutUint64(b[8:], c.Hi)
	binary.LittleEndian.PutUint64(b[16:], message.Lo)
	binary.LittleEndian.PutUint64(b[24:], message.Hi)
	return xxh3.Hash128(b[:])
}

// chainsOf returns the chain of each message.
func chainsOf(c *Conversation, m Source, asCame bool) []chain {
	chains := make([]chain, m.Len())
	last := firstChain(c.Tenant, c.Model, c.Key)
	for i := range chains {
		last = nextChain(last, m.Sum(i))
		chains[i] = last
	}
	if asCame {
		for i := range chains {
			chains[i] = aside(chains[i])
		}
	}
	return chains
}

// link is one message of a conversation as it was forwarded, with the plain ones in front of it. It is never changed, so
// conversations that begin alike share their links, a client may go back to any point, and two requests at a time do no
// harm. Only the names under which the pilot knows its leads are the latest.
type link struct {
	chain      chain
	before     *link
	messages   int // of the conversation, up to and including this one
	edits      []edit
	systemOnly bool // nothing but system messages up to here
	multi      bool // an earlier or this result held several documents
	calls      []Call
	shown      []shownAs
	rows       repeat.Known
	scope      *contextpilot.Scope // whose index its documents at the front of the prompt are in; nil: it has none
	leads      []*lead             // these, one for each text
	lines      Lines
}

// edit is a text's of the message.
type edit struct {
	text int
	at   uint64
	with string
}

// content stands for a document's or a text's bytes.
type content = xxh3.Uint128

// shownAs is a document that a text of the message shows.
type shownAs struct {
	shown
	role Role
}

// plain reports whether the message was forwarded as it came and later ones do not depend on it. The same follows from its
// bytes when it is sent again, so it has no link unless a request ends with it.
func (t *link) plain() bool {
	return len(t.edits)+len(t.calls)+len(t.shown)+len(t.leads)+t.rows.Weight() == 0 && t.scope == nil
}

// linkBytes is what a link takes beside what it points to, with its entry, list element and place in the table.
const linkBytes = 408

// weight is about how many bytes the link takes.
func (t *link) weight() int {
	n := linkBytes + 48*(len(t.shown)+len(t.calls)) + t.rows.Weight()
	for _, c := range t.calls {
		n += len(c.ID) + len(c.Tool)
	}
	for _, e := range t.edits {
		n += 32 + len(e.with)
	}
	for _, l := range t.leads {
		n += 200 + 92*len(l.blocks)
	}
	return n
}

// session is a conversation that clients give a name. Requests that run compare it by its address.
type session struct {
	// Guarded by memo.mu.
	forgotten bool
	sent      bool // a request, and asCame is how the last one was forwarded
	asCame    bool
}

// memo remembers a tenant's links as long as the budget has room; those that were not sent for longest are forgotten
// first, ends of conversations before their beginnings. Whatever is remembered has all links before it remembered too, so what is
// forgotten cannot be reached, and its memory is free when the requests that use it have ended. A forgotten link
// is planned again: all references come out the same, as they follow from the body alone; only an order may differ.
// Safe for concurrent use.
type memo struct {
	budget *budget.Budget
	part   *budget.Part

	mu      sync.Mutex
	entries *lru.Cache[chain, *entry] // in the order in which they were sent, each behind the link before it; guarded by mu
}

// entry is a link that is remembered.
type entry struct {
	link   *link
	owner  *session // was the first to send it; nil: had no name
	shared bool     // another session has sent it too
	ended  bool     // a request without a session's name ended with it
}

func newMemo(b *budget.Budget, tenant string) *memo {
	m := &memo{budget: b}
	m.part = b.Part(tenant, "conversations", m.dropOldest)
	weigh := func(_ chain, e *entry) int { return e.link.weight() }
	m.entries = lru.With(lru.Options[chain, *entry]{Weigh: weigh, Changed: m.part.Add})
	return m
}

// longest returns the last of the chains that is known, nil if none is, and how many messages it covers. by sends them now;
// nil: no named session. O(messages).
func (m *memo) longest(chains []chain, by *session) (*link, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := len(chains); n > 0; n-- {
		found, ok := m.entries.Peek(chains[n-1])
		if !ok {
			continue
		}
		for t := found.link; t != nil; t = t.before {
			e, _ := m.entries.Get(t.chain)
			e.shared = e.shared || by != nil && e.owner != by
		}
		return found.link, n
	}
	return nil, 0
}

// add remembers a link that by has sent, and returns the one to go on with: where another request was first with the same
// messages, its. A link whose beginning was forgotten meanwhile is not remembered.
func (m *memo) add(t *link, by *session) *link {
	defer m.budget.Settle() // without the lock
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries.Peek(t.chain); ok {
		e.shared = e.shared || by != nil && e.owner != by
		return e.link
	}
	if by != nil && by.forgotten {
		return t
	}
	e := &entry{link: t, owner: by}
	if t.before == nil {
		m.entries.Put(t.chain, e)
	} else if before, ok := m.entries.Peek(t.before.chain); ok && before.link == t.before {
		m.entries.PutBehind(t.before.chain, t.chain, e)
	}
	return t
}

// sent notes that a request of by ended with a link, and how it was forwarded.
func (m *memo) sent(last *link, by *session, asCame bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if by != nil {
		by.sent, by.asCame = true, asCame
		return
	}
	if last == nil {
		return
	}
	if e, ok := m.entries.Peek(last.chain); ok {
		e.ended = true
	}
}

// went returns how the last request of a conversation was forwarded, if that is known: that of its session, else the longest one
// that these messages go on from. Where the same messages were forwarded in both ways it is not. O(messages).
func (m *memo) went(chains []chain, by *session) (asCame, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if by != nil {
		return by.asCame, by.sent
	}
	for n := len(chains); n > 0; n-- {
		planned, asCame := m.ended(chains[n-1]), m.ended(aside(chains[n-1]))
		if planned || asCame {
			return asCame, planned != asCame
		}
	}
	return false, false
}

// ended reports whether a request ended with a link that is not the system's. The lock is held.
func (m *memo) ended(c chain) bool {
	e, ok := m.entries.Peek(c)
	return ok && e.ended && !e.link.systemOnly
}

// dropOldest is for the budget.
func (m *memo) dropOldest() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, e, ok := m.entries.DropOldest(); ok {
		return e.link.weight()
	}
	return 0
}

// forget drops what a session was the first to send, and whatever is behind it. A beginning that another session has sent
// too stays: it is that one's as well. O(links).
func (m *memo) forget(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.forgotten = true
	gone := map[*link]bool{}
	for c, e := range m.entries.All() { // links come behind those before them
		if e.owner == s && !e.shared || gone[e.link.before] {
			gone[e.link] = true
			m.entries.Delete(c)
		}
	}
}
