package kvstore

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// Check is called after every action.
func (m *machine) Check(t *rapid.T) {
	m.checkProgress(t)
	m.fold(t)
	m.checkIndex(t)
	m.checkPages(t)
}

// fold brings the picture up to date by events alone, and looks that what left was unused longest.
func (m *machine) fold(t *rapid.T) {
	for _, e := range m.store.Events() {
		switch {
		case e.Medium != "":
			if stored := e.Kind == kvevents.Stored; m.inTier[e.Hashes[0]] == stored {
				t.Fatalf("%v of a page that the tier has: %v", e.Kind, !stored)
			}
			m.inTier[e.Hashes[0]] = e.Kind == kvevents.Stored
			continue
		case e.Kind == kvevents.Cleared:
			clear(m.inTier)
		}
		switch e.Kind {
		case kvevents.Stored:
			parent, there := m.blocks[e.Parent]
			if !there && !e.Parent.IsZero() {
				t.Fatalf("stored behind %v, which is not there", e.Parent)
			}
			b := block{salt: parent.salt + string(e.Salt), tokens: slices.Clone(parent.tokens)}
			for _, token := range e.Block(0) {
				b.tokens = append(b.tokens, int32(token))
			}
			if m.resident[key(b.salt, b.tokens)] {
				t.Fatalf("%v is stored twice", b)
			}
			m.blocks[e.Hashes[0]] = b
			m.resident[key(b.salt, b.tokens)] = true
		case kvevents.Removed:
			b := m.blocks[e.Hashes[0]]
			name := key(b.salt, b.tokens)
			m.unuse()
			if len(m.order) == 0 || m.order[0] != name {
				t.Fatalf("%q was removed, unused longest is %q", name, m.order[:min(1, len(m.order))])
			}
			m.order = m.order[1:]
			delete(m.resident, name)
			delete(m.blocks, e.Hashes[0])
		case kvevents.Cleared:
			m.order = nil
			clear(m.resident)
			clear(m.blocks)
		}
	}
	m.unuse()
	there := map[kvevents.Hash]bool{}
	for id := range m.below {
		there[id.Page.event()] = true
	}
	for hash, below := range m.inTier {
		if below && !there[hash] {
			t.Fatal("events say that the tier has a page that it has not")
		}
	}
}

// unuse takes what sequences use out of order.
func (m *machine) unuse() {
	used := map[string]bool{}
	for _, q := range m.open {
		for i, p := range q.pages {
			if p.indexed && p.computed && p.unreported == nil {
				used[key(q.salt, own(q)[:(i+1-q.prefix)*PageTokens])] = true
			}
		}
	}
	m.order = slices.DeleteFunc(m.order, func(k string) bool { return used[k] })
}

// checkIndex: events report exactly what can be found.
func (m *machine) checkIndex(t *rapid.T) {
	computed := 0
	for hash, p := range m.store.index {
		if p.hash != hash || !p.indexed {
			t.Fatal("a page stands in the index under another hash")
		}
		if p.unreported != nil && (p.refs == 0 || p.owner != nil || p.computed == p.loading) {
			t.Fatal("a page that was not reported is unused, or neither loading nor loaded")
		}
		if p.computed && p.unreported == nil {
			computed++
			if _, reported := m.blocks[hash.event()]; !reported {
				t.Fatal("a page can be found that no event reported")
			}
		} else if p.refs == 0 {
			t.Fatal("a page in the index is neither used nor computed")
		}
	}
	if computed != len(m.blocks) || len(m.resident) != len(m.blocks) {
		t.Fatalf("%d pages can be found, events report %d", computed, len(m.blocks))
	}
	if len(m.order) != m.store.unused.Len() {
		t.Fatalf("%d pages are unused, want %d", m.store.unused.Len(), len(m.order))
	}
}

// checkPages: each page is of as many sequences as it counts, and nothing is lost.
func (m *machine) checkPages(t *rapid.T) {
	refs := map[*page]int{}
	for _, q := range m.open {
		for i, p := range q.pages {
			refs[p]++
			if i > q.prefix && p.indexed && !q.pages[i-1].indexed || i < q.prefix && p.indexed {
				t.Fatalf("page %d is in the index, the one before it is not", i)
			}
			if p.loading && (p.owner != nil || p.computed || !slices.ContainsFunc(m.loads, func(id ID) bool { return id.Page == p.hash })) {
				t.Fatalf("page %d waits for a load that was not asked for", i)
			}
			if p.owner != nil && !slices.Contains(m.open, p.owner) {
				t.Fatalf("page %d belongs to a sequence that was closed", i)
			}
		}
	}
	for _, x := range m.pinned {
		for _, p := range x.pages {
			refs[p]++
		}
	}
	s := m.store
	for p, n := range refs {
		if p.refs != n {
			t.Fatalf("a page of %d sequences counts %d", n, p.refs)
		}
	}
	stats := s.Stats()
	if stats.Used != len(refs) || stats.Used+stats.Cached+len(s.free) != s.made || s.made > s.capacity {
		t.Fatalf(
			"%d pages of %d were made: %d in use, counted %d, %d unused, %d free",
			s.made,
			s.capacity,
			len(refs),
			stats.Used,
			stats.Cached,
			len(s.free),
		)
	}
}

// checkProgress: as long as something is missing, some sequence can be computed.
func (m *machine) checkProgress(t *rapid.T) {
	todo := false
	for _, q := range m.open {
		if q.Computed() == len(q.Tokens()) {
			continue
		}
		if todo = true; q.Ready(1) > 0 {
			return
		}
	}
	if todo && len(m.loads) == 0 {
		t.Fatal("all sequences wait for each other")
	}
}
