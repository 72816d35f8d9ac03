package httpload

import (
	"fmt"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// numberCheck checks a text that arrives in pieces of any length: the numbers of [upstream.Numbered] from a seed on, with
// one space between them.
type numberCheck struct {
	seed  int64
	begun int    // tokens of which a byte may have come
	rest  string // of the last of these, to come
	bytes int    // of text so far
}

// complete returns the number of tokens that are all there.
func (c *numberCheck) complete() int {
	if c.rest != "" {
		return c.begun - 1
	}
	return c.begun
}

// add takes the next piece of text. Once it returned an error the text is spoilt.
func (c *numberCheck) add(piece string) error {
	for len(piece) > 0 {
		if c.rest == "" {
			c.rest = upstream.Number(c.seed, c.begun)
			if c.begun > 0 {
				c.rest = " " + c.rest
			}
			c.begun++
		}
		n := min(len(c.rest), len(piece))
		for i := range n {
			if c.rest[i] != piece[i] {
				return fmt.Errorf("%w: byte %d of the text: %q, want %q of token %d", errCorrupt, c.bytes+i, piece[:n], c.rest, c.begun-1)
			}
		}
		c.rest, piece = c.rest[n:], piece[n:]
		c.bytes += n
	}
	return nil
}
