package notes

import (
	"slices"
	"strings"
	"unicode"
)

// Moved stands for a piece of the system text that is sent in another place. Unlike the other notes it says what it stands for.
func Moved(text string) string {
	if strings.Contains(text, "\n") {
		return "[from the system text:\n" + text + "\n]"
	}
	return "[from the system text: " + text + "]"
}

// FenceMoved returns a text with a fence word in each place that has the form of [Moved], behind "from". The rules are those of [Fence].
func FenceMoved(text string) string { return insert(text, movedPlaces(text)) }

// FenceMovedParts is FenceMoved for texts that a reader may see as one, see [FenceParts].
func FenceMovedParts(parts []string) []string { return fenceParts(parts, movedPlaces) }

// FenceMovedWhere is FenceMoved of a text that is not all of others: only where inside reports that a place is theirs.
func FenceMovedWhere(text string, inside func(at int) bool) string {
	return insert(text, slices.DeleteFunc(movedPlaces(text), func(at int) bool { return !inside(at) }))
}

// ofMoved are the letters of the note.
const ofMoved = "fromthesystemtext"

var (
	movedForms = masks(ofMoved)
	movedCore  = newPhrase("systemtext")
)

// movedPlaces returns where fence words belong: where the letters of the note stand behind an opening bracket or a quote, or at the
// beginning of the text, since what stands in front of it may end with one.
func movedPlaces(text string) []int {
	if !movedCore.mayBeIn(text) {
		return nil
	}
	const fromRead, allRead = 1 << (len("from") - 1), 1 << (len(ofMoved) - 1)
	var out []int
	state, open, ends := uint64(0), true, 0
	for at := 0; at < len(text); {
		r, maybe, next := read(text, at)
		at = next
		l, isLetter := letter(r)
		if !isLetter {
			open = open || opens(r)
			continue
		}
		m := uint64(0)
		if l >= 0 {
			m = movedForms[l]
		}
		to := state << 1 & m
		if open {
			to |= 1 & m
		}
		if maybe {
			state |= to
			continue
		}
		state, open = to, false
		if state&fromRead != 0 {
			ends = at
		}
		if state&allRead != 0 {
			out = once(out, ends)
		}
	}
	return out
}

// opens reports whether a character may open a note.
func opens(r rune) bool {
	return strings.ContainsRune("[({<\"'`|", r) || r >= 0x80 && (unicode.Is(unicode.Ps, r) || unicode.Is(unicode.Quotation_Mark, r))
}
