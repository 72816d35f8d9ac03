package recorded

import "github.com/ragpilot/ragpilot/internal/base/lru"

// maxTurns is how many turns of a conversation are looked back: the work for one turn is bounded although IDs come
// from clients, who may chain as many as they like.
const maxTurns = 4096

// docsPerTurn bounds the docs that chains remember, on average over their turns.
const docsPerTurn = 64

// Chains de-duplicates along chains of requests: a doc that any ancestor of the parent had is overlapping. It
// sees IDs only, not messages; where the messages are known, contextpilot's de-duplication checks them instead.
// At most limit turns of 64 docs on average are remembered, the oldest are forgotten first. Not safe for concurrent
// use.
type Chains[D comparable] struct {
	turns *lru.Cache[string, *turn[D]] // none is marked as used; the weight is in docs
}

type turn[D comparable] struct {
	parent string
	docs   []D
	depth  int
}

// Deduped is one turn's outcome. Sources names the request that showed an overlapping doc.
type Deduped[D comparable] struct {
	New, Overlapping []D
	Hints            []string
	Sources          map[D]string
	IsNew            bool
}

// NewChains returns an empty record of at most limit turns (at least 1).
func NewChains[D comparable](limit int) *Chains[D] {
	limit = max(limit, 1)
	return &Chains[D]{lru.With(lru.Options[string, *turn[D]]{
		Entries: limit, Weight: docsPerTurn * limit, Weigh: func(_ string, t *turn[D]) int { return len(t.docs) },
	})}
}

// Len returns the number of turns.
func (c *Chains[D]) Len() int { return c.turns.Len() }

const (
	// turnBytes is about what a turn takes beside its docs, and turnDocBytes what each of those takes.
	turnBytes, turnDocBytes = 260, 24
)

// Weight is about how many bytes the turns take.
func (c *Chains[D]) Weight() int { return turnBytes*c.turns.Len() + turnDocBytes*c.turns.Weight() }

// DropOldest forgets the oldest turn, and reports whether there was one.
func (c *Chains[D]) DropOldest() bool {
	_, _, ok := c.turns.DropOldest()
	return ok
}

// Has reports whether a turn of that ID is remembered.
func (c *Chains[D]) Has(id string) bool { return c.turns.Has(id) }

// Add records the turn id after parent ("" or unknown: a new conversation) and returns which of its docs the chain has shown.
// Hints call docs[i] name(i). docs belong to the record afterwards.
func (c *Chains[D]) Add(id, parent string, docs []D, hint Hint, name func(i int) string) Deduped[D] {
	out := Deduped[D]{New: []D{}, Overlapping: []D{}, Hints: []string{}, Sources: map[D]string{}}
	up, known := c.turns.Peek(parent)
	out.IsNew = !known
	fresh := &turn[D]{docs: docs, depth: 1}
	if known { // an unknown parent is not kept: should it turn up later, this was no child of it
		fresh.parent, fresh.depth = parent, up.depth+1
	}
	shown := c.shown(parent, docs)
	for i, d := range docs {
		src, ok := shown[d]
		if !ok {
			out.New = append(out.New, d)
			continue
		}
		out.Overlapping = append(out.Overlapping, d)
		out.Sources[d] = src.id
		out.Hints = append(out.Hints, hint.text(name(i), src))
	}
	c.turns.Put(id, fresh)
	return out
}

type source struct {
	id    string
	depth int
}

// shown returns for each of the docs that the chain ending in id had the earliest request that had it.
func (c *Chains[D]) shown(id string, docs []D) map[D]source {
	out := map[D]source{}
	if len(docs) == 0 || !c.Has(id) {
		return out
	}
	asked := make(map[D]bool, len(docs))
	for _, d := range docs {
		asked[d] = true
	}
	c.walk(id, func(id string, t *turn[D]) {
		for _, d := range t.docs {
			if asked[d] {
				out[d] = source{id, t.depth}
			}
		}
	})
	return out
}

// walk visits the chain from its last turn to its first.
func (c *Chains[D]) walk(id string, visit func(id string, t *turn[D])) {
	t, ok := c.turns.Peek(id)
	for n := 0; ok && n < maxTurns; n++ {
		visit(id, t)
		up, known := c.turns.Peek(t.parent)
		if known && up.depth >= t.depth {
			return // an ID that was used again: its new turn is no ancestor
		}
		id, t, ok = t.parent, up, known
	}
}

// Clear forgets the turn id and all its ancestors and returns how many turns that were. Turns that came after it stay.
func (c *Chains[D]) Clear(id string) (cleared int) {
	var ids []string
	c.walk(id, func(id string, _ *turn[D]) { ids = append(ids, id) })
	for _, id := range ids {
		c.turns.Delete(id)
	}
	return len(ids)
}
