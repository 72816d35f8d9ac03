package adapter

import (
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/lru"
)

// maxRewrites bounds the texts that Turns remembers, the least recently used go first. A text is a turn with its
// documents, some 10 KB: 40 MB when full. One that is forgotten is sent in full again: slower, not wrong.
const maxRewrites = 4096

// rewriteKey identifies a text by the conversation, itself, and all that the caller put in front of it. So a text is
// only ever replaced behind the very messages that it was replaced behind before, and what it refers to is there.
type rewriteKey xxh3.Uint128

// rewrites remembers what was sent in place of the caller's texts.
type rewrites struct {
	mu   sync.Mutex
	text *lru.Cache[rewriteKey, string] // guarded by mu
}

func newRewrites() *rewrites { return &rewrites{text: lru.New[rewriteKey, string](maxRewrites)} }

func (r *rewrites) get(key rewriteKey) (text string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Get(key)
}

// remember notes what was sent for a text, so that later calls repeat it.
func (r *rewrites) remember(p place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.sent != p.text {
		r.text.Put(p.key, p.sent)
	} else {
		r.text.Delete(p.key)
	}
}
