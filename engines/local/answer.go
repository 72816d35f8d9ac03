package local

import (
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
)

// answer is one answer while it is generated.
type answer struct {
	now    func() time.Time
	stream *bpe.Stream
	cutter cutter
	onText func(piece string) error
	start  time.Time

	text   strings.Builder // all that was given out
	first  time.Duration   // when the first of it was, 0: not yet
	output int             // tokens
}

// cutter finds the first stop text in a text that comes in pieces.
type cutter struct {
	stops []string
	held  string // what may be the beginning of a stop text
}

// next returns what is certain to stand in front of any stop text, and whether one follows it.
func (c *cutter) next(piece string) (text string, stopped bool) {
	c.held += piece
	at := len(c.held)
	for _, stop := range c.stops {
		if i := strings.Index(c.held, stop); i >= 0 && i < at {
			at, stopped = i, true
		}
	}
	if !stopped {
		at -= c.begun()
	}
	text, c.held = c.held[:at], c.held[at:]
	return text, stopped
}

// rest returns what was held back, at the end of the text.
func (c *cutter) rest() string { return c.held }

// begun returns how many of the last bytes held may be the beginning of a stop text.
func (c *cutter) begun() int {
	most := 0
	for _, stop := range c.stops {
		for n := min(len(stop)-1, len(c.held)); n > most; n-- {
			if strings.HasSuffix(c.held, stop[:n]) {
				most = n
				break
			}
		}
	}
	return most
}
