package framework

import (
	"sync"

	"github.com/ragpilot/ragpilot/citation"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// maxBooks bounds the conversations whose labels are known, the least recently used go first; maxBookPlans the turns of
// each. A label of a turn that is forgotten is not found, unless a later turn retrieved it again.
const (
	maxBooks     = 4096
	maxBookPlans = 128
)

// books holds what labels stand for, by conversation.
type books struct {
	mu   sync.Mutex
	book *lru.Cache[string, *citation.Sources] // guarded by mu
}

func newBooks() *books { return &books{book: lru.New[string, *citation.Sources](maxBooks)} }

// of returns the book of a conversation; without one, every request has its own.
func (b *books) of(session string) *citation.Sources {
	if session == "" {
		return citation.NewSourcesOf(1)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.book.Get(session)
	if !ok {
		s = citation.NewSourcesOf(maxBookPlans)
		b.book.Put(session, s)
	}
	return s
}

// ranks returns the ranks that the claimed plan gives to the blocks of plan, which are some of its own: in the
// retriever's order, or in that of the prompt.
func ranks(claimed, plan *contextpilot.Plan) []int {
	out, taken := make([]int, plan.Len()), make([]bool, claimed.Len())
	for i := range out {
		b := plan.Block(i)
		for j := range taken {
			if c := claimed.Block(j); !taken[j] && c.ID == b.ID && c.Text == b.Text {
				out[i], taken[j] = j+1, true
				break
			}
		}
	}
	return out
}
