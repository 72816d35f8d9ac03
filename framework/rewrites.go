package framework

import (
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/lru"
)

// maxRewrites bounds the texts that Turns remembers, the least recently used go first; a turn with its documents is one
// and its front another, of the same bytes. A turn has some 10 KB: 40 MB when full. One that is forgotten is sent in full again: slower,
// not wrong.
const maxRewrites = 8192

// rewriteKey identifies a text by the conversation, itself, and all that the caller put in front of it. So a text is
// only ever replaced behind the very messages that it was replaced behind before, and what it refers to is there.
type rewriteKey xxh3.Uint128

// rewrite is what was sent for a text.
type rewrite struct {
	text string
	same bool // it was sent as it was
}

// rewrites remembers what was sent for the caller's texts, and for their fronts up to a plan's last block: a text may grow at its
// end, as an agent's does that notes in it what its tools say.
type rewrites struct {
	mu   sync.Mutex
	text *lru.Cache[rewriteKey, rewrite] // guarded by mu
}

func newRewrites() *rewrites { return &rewrites{text: lru.New[rewriteKey, rewrite](maxRewrites)} }

// again returns what is to be sent for a text that had a plan before, which is then known, or whose front had.
func (r *rewrites) again(p *place) (sent string, known bool) {
	r.mu.Lock()
	whole, ok := r.text.Get(p.key)
	r.mu.Unlock()
	switch {
	case ok && whole.same:
		return p.text, true
	case ok:
		return whole.text, true
	}
	front, end := r.front(p, len(p.text))
	// Documents that follow at once are other documents of one prompt.
	if rest := p.text[end:]; end > 0 && !strings.HasPrefix(strings.TrimLeft(rest, " \n\t"), "<doc ") {
		return front + rest, false
	}
	return p.text, false
}

// front returns what was sent for the longest part of text[:limit] that a plan's last block ends and that was sent before; end is 0 if
// none was.
func (r *rewrites) front(p *place, limit int) (sent string, end int) {
	if !strings.Contains(p.text[:limit], "</doc") {
		return "", 0
	}
	h := p.frontHash()
	for at := 0; ; {
		i := strings.Index(p.text[at:limit], "</doc")
		if i < 0 {
			return sent, end
		}
		n := strings.IndexByte(p.text[at+i:limit], '>')
		if n < 0 {
			return sent, end
		}
		_, _ = h.WriteString(p.text[at : at+i+n+1])
		at += i + n + 1
		r.mu.Lock()
		was, ok := r.text.Get(rewriteKey(h.Sum128()))
		r.mu.Unlock()
		if ok {
			sent, end = was.text, at
			if was.same {
				sent = p.text[:at]
			}
		}
	}
}

// remember notes what was sent for a text, so that later calls repeat it.
func (r *rewrites) remember(p *place) {
	r.put(p.key, p.text, p.sent)
	if end := len(p.text) - p.behind; p.front && end > 0 {
		h := p.frontHash()
		_, _ = h.WriteString(p.text[:end])
		r.put(rewriteKey(h.Sum128()), p.text[:end], p.sent[:len(p.sent)-p.behind])
	}
}

func (r *rewrites) put(key rewriteKey, text, sent string) {
	was := rewrite{same: sent == text}
	if !was.same {
		was.text = sent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Put(key, was)
}

// frontHash returns a hash of all in front of the text, for its own front. No key of a whole text begins so.
func (p *place) frontHash() *xxh3.Hasher {
	h := xxh3.New()
	before := p.before.Bytes()
	_, _ = h.WriteString("front:")
	_, _ = h.Write(before[:])
	return h
}
