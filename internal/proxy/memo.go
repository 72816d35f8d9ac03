package proxy

import (
	"container/list"
	"encoding/binary"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/repeat"
)

// chain stands for everything that a client has sent up to and including one item of a conversation, for its tenant,
// its model and its controls.
type chain = xxh3.Uint128

// firstChain begins a conversation.
func firstChain(tenant, model, controls string) chain {
	return xxh3.HashString128(tenant + "\x00" + model + "\x00" + controls)
}

// nextChain goes on with the bytes of an item.
func nextChain(c chain, item []byte) chain {
	h := xxh3.Hash128(item)
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], c.Lo)
	binary.LittleEndian.PutUint64(b[8:], c.Hi)
	binary.LittleEndian.PutUint64(b[16:], h.Lo)
	binary.LittleEndian.PutUint64(b[24:], h.Hi)
	return xxh3.Hash128(b[:])
}

// turn is one item of a conversation as it was forwarded. It is never changed, so conversations that begin alike
// share their turns, a client may go back to any point, and two requests at a time do no harm.
type turn struct {
	chain  chain
	before *turn
	edits  []edit // offsets from the item's first byte
	front  bool   // nothing but system items up to here
	multi  bool   // an earlier or this tool result held several documents
	calls  []call
	shown  []content
	single []single
	lines  []repeat.Known
}

// content stands for a document's or a text's bytes.
type content = xxh3.Uint128

// single is a tool result that is one document.
type single struct {
	content content
	toolID  string
}

// weight is about how many bytes the turn takes.
func (t *turn) weight() int {
	n := 200 + 16*len(t.shown) + 48*(len(t.single)+len(t.calls))
	n += 80 * len(t.lines)
	for _, e := range t.edits {
		n += 48 + len(e.with)
	}
	return n
}

// memo remembers turns up to a number of bytes, those that were not sent for longest are forgotten first, ends of
// conversations before their beginnings. A forgotten turn is planned again: all references come out the same, as they
// follow from the body alone; only an order may differ. Safe for concurrent use.
type memo struct {
	mu    sync.Mutex
	limit int // bytes
	bytes int
	at    map[chain]*list.Element
	order list.List // of *turn, most recently sent first
}

func newMemo(limit int) *memo { return &memo{limit: limit, at: map[chain]*list.Element{}} }

// longest returns the last of the chains that is known, nil if none is, and how many items it covers. O(items).
func (m *memo) longest(chains []chain) (*turn, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := len(chains); n > 0; n-- {
		e, ok := m.at[chains[n-1]]
		if !ok {
			continue
		}
		found := e.Value.(*turn)
		for t := found; t != nil; t = t.before {
			if e, ok := m.at[t.chain]; ok {
				m.order.MoveToFront(e)
			}
		}
		return found, n
	}
	return nil, 0
}

// add remembers a turn, and returns the one to go on with: where another request was first with the same items, its.
func (m *memo) add(t *turn) *turn {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.at[t.chain]; ok {
		return e.Value.(*turn)
	}
	m.at[t.chain] = m.order.PushFront(t)
	m.bytes += t.weight()
	for m.bytes > m.limit && m.order.Len() > 1 {
		last := m.order.Remove(m.order.Back()).(*turn)
		delete(m.at, last.chain)
		m.bytes -= last.weight()
	}
	return t
}

// forget drops a turn and all before it, which other conversations that began alike then plan again.
func (m *memo) forget(t *turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for ; t != nil; t = t.before {
		if e, ok := m.at[t.chain]; ok {
			m.order.Remove(e)
			delete(m.at, t.chain)
			m.bytes -= t.weight()
		}
	}
}
