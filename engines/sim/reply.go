package sim

import (
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// reply is the default answer: the same for the same last message, another one for another.
func reply(req engines.Request) string {
	last := ""
	if n := len(req.Messages); n > 0 {
		last = req.Messages[n-1].Content
	}
	return fmt.Sprintf("This is simulated answer %06x.", xxh3.HashString(last)&0xffffff)
}

// truncate cuts text after limit tokens (0: no limit) and says whether anything was lost.
func truncate(text string, limit int) (string, bool) {
	if limit <= 0 {
		return text, false
	}
	end, n := 0, 0
	for at, piece := range tokens.Pieces(text) {
		if n == limit {
			return text[:end], true
		}
		n, end = n+1, at+len(piece)
	}
	return text, false
}

// speak gives text to say in pieces of one token each, with the white space in front of it; white space at the end
// belongs to the last piece. Before each piece, and once more after the last, it asks next whether to go on, with the
// number of pieces said. It returns how much was said, in tokens and in bytes.
func speak(text string, next func(said int) error, say func(piece string) error) (said, bytes int, err error) {
	start, end, held := 0, 0, false // the piece held back until the next token shows where it ends
	give := func(to int) error {
		if err := next(said); err != nil {
			return err
		}
		said, bytes = said+1, to
		return say(text[start:to])
	}
	for at, piece := range tokens.Pieces(text) {
		if held {
			if err := give(end); err != nil {
				return said, bytes, err
			}
			start = end
		}
		end, held = at+len(piece), true
	}
	if len(text) > 0 {
		if err := give(len(text)); err != nil {
			return said, bytes, err
		}
	}
	return said, bytes, next(said)
}
