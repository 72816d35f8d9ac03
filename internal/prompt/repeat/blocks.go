package repeat

import (
	"crypto/md5"
	"encoding/binary"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// DefaultModulus makes blocks of about 15 lines: one line in so many may end a block.
	DefaultModulus = 13

	minLines = 3  // of a block, and of what is cut at all
	maxLines = 40 // of a block, not counting a short rest that joins it
)

// piece is a block where it stands in a body.
type piece struct {
	from, to int // its bytes, without what ends its last line
	lines    int
	only     bool // there is no other
}

// pieces cuts a body into blocks. Each is held back until the next one is complete: a short rest joins it.
func (b body) pieces(modulus int) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		var scratch []byte
		var held, open piece // of no lines: none
		first := true
		give := func() bool {
			first = false
			return yield(held)
		}
		for at := b.from; at >= 0; {
			end, next := b.line(at)
			if open.lines == 0 {
				open.from = at
			}
			open.lines++
			open.to = end
			if open.lines >= maxLines || open.lines >= minLines && mayEnd(b.compared(at, end), modulus, &scratch) {
				if held.lines > 0 && !give() {
					return
				}
				held, open = open, piece{}
			}
			at = next
		}
		switch {
		case open.lines == 0:
		case open.lines < minLines && held.lines > 0:
			held.to = open.to
			held.lines += open.lines
		default:
			if held.lines > 0 && !give() {
				return
			}
			held = open
		}
		held.only = first
		yield(held)
	}
}

// mayEnd reports whether a line may be the last one of a block. scratch is kept from line to line.
func mayEnd(line string, modulus int, scratch *[]byte) bool {
	if modulus <= 0 {
		modulus = DefaultModulus
	}
	*scratch = append((*scratch)[:0], strings.TrimFunc(line[numberEnd(line):], isSpace)...)
	sum := md5.Sum(*scratch)
	return uint64(binary.LittleEndian.Uint32(sum[:]))%uint64(modulus) == 0
}

// trimmed returns a text without white space around it.
func trimmed(text string) string { return strings.TrimFunc(text, isSpace) }

// numberEnd returns where a line number such as "  12|" ends, or 0 if the line has none.
func numberEnd(line string) int {
	rest := strings.TrimLeftFunc(line, isSpace)
	after := strings.TrimLeftFunc(rest, unicode.IsDigit)
	if len(after) == len(rest) || !strings.HasPrefix(after, "|") {
		return 0
	}
	return len(line) - len(after) + 1
}

// unnumbered returns a text without its line numbers.
func unnumbered(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = line[numberEnd(line):]
	}
	return strings.Join(lines, "\n")
}

// isListing reports whether every line has a number and each number is one more than the one before. Only then do
// the numbers follow from the first one; others are data.
func isListing(text string) bool {
	_, _, ok := numbersOf(text)
	return ok
}

// numbersOf returns the first and the last number of a listing.
func numbersOf(text string) (first, last int, ok bool) {
	i := 0
	for line := range strings.Lines(text) {
		end := numberEnd(line)
		if end == 0 {
			return 0, 0, false
		}
		n, err := strconv.Atoi(strings.TrimFunc(line[:end-1], isSpace))
		if err != nil || i > 0 && n != first+i {
			return 0, 0, false
		}
		if i == 0 {
			first = n
		}
		i++
		last = n
	}
	return first, last, i > 0
}

// isSpace agrees with Python's str.isspace, which counts four separators that Unicode does not.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// runes counts characters as the recorded lengths do.
func runes(s string) int { return utf8.RuneCountInString(s) }
