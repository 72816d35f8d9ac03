package llamacpp

import (
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// HostTier is the tier's name in Moved events: the server's memory for the state of slots, from where it loads what
// matches a prompt. See [contextpilot.Config].LoadCost.
const HostTier = "host"

// holder is a served request whose prefix lies in a slot.
type holder struct {
	id       string
	slot     int // -1: in none; it is kept for its ID then, because the host cache may have it
	resident int // tokens from the start of its prompt
	prompt   int // tokens of its prompt, 0: not known
}

// tracker knows which served requests have tokens in which slot. It holds a bounded number of them.
type tracker struct {
	byID *lru.Cache[string, *holder] // the one served first goes first
}

func newTracker(limit int) tracker { return tracker{lru.New[string, *holder](limit)} }

// enter makes a request the holder of its tokens in a slot. It returns the ID that is forgotten for it, "" if none.
func (t *tracker) enter(slots []slot, id string, at, resident, prompt int) (forgotten string) {
	t.forget(slots, id)
	h := &holder{id: id, slot: at, resident: resident, prompt: prompt}
	slots[at].holders = append(slots[at].holders, h)
	_, old, full := t.byID.Put(id, h)
	if !full {
		return ""
	}
	old.leave(slots)
	return old.id
}

// forget ends the following of a request.
func (t *tracker) forget(slots []slot, id string) {
	if h, ok := t.byID.Get(id); ok {
		t.byID.Delete(id)
		h.leave(slots)
	}
}

// leave takes a holder out of its slot.
func (h *holder) leave(slots []slot) {
	if h.slot >= 0 {
		s := &slots[h.slot]
		s.holders = slices.DeleteFunc(s.holders, func(x *holder) bool { return x == h })
	}
}

// cut is called when the slot keeps only its first keep tokens. What is lost there may lie in another slot as well.
// saved says that the host cache has got the rest. It returns an event for each request that lost something.
func (t *tracker) cut(slots []slot, at, keep int, saved bool) []contextpilot.Event {
	old := slots[at].tokens
	better, most := -1, keep
	for i := range slots {
		if i == at || slots[i].other != nil {
			continue
		}
		if n := common(old, slots[i].tokens); n > most {
			better, most = i, n
		}
	}
	var events []contextpilot.Event
	stay := slots[at].holders[:0]
	for _, h := range slots[at].holders {
		if h.resident <= keep {
			stay = append(stay, h)
			continue
		}
		lost := h.resident > most
		h.resident = min(h.resident, most)
		switch {
		case better >= 0:
			h.slot = better
			slots[better].holders = append(slots[better].holders, h)
		case h.resident > 0:
			stay = append(stay, h)
		default:
			h.slot = -1
		}
		if lost {
			events = append(events, t.lost(h, saved))
		}
	}
	clear(slots[at].holders[len(stay):])
	slots[at].holders = stay
	return events
}

// lost words what happened to a holder whose tokens became fewer.
func (t *tracker) lost(h *holder, saved bool) contextpilot.Event {
	e := contextpilot.Event{Kind: contextpilot.Shrunk, Request: h.id, Tokens: h.resident, Prompt: h.prompt}
	switch {
	case saved:
		e.Kind, e.Tier = contextpilot.Moved, HostTier
	case h.resident == 0:
		e.Kind, e.Prompt = contextpilot.Gone, 0
		t.byID.Delete(h.id)
	}
	return e
}

// reset forgets everything.
func (t *tracker) reset() {
	for ok := true; ok; {
		_, _, ok = t.byID.DropOldest()
	}
}
