package notes

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Fence returns a text with a fence word in each place that has the form of a note, between "identical" and "to". It
// follows from the text alone. The word is one that the text does not have, so that taking it out gives the text back. It
// has no character that JSON or markup must escape, so what the text was otherwise, it still is.
func Fence(text string) string {
	return insert(text, places(text))
}

// FenceParts fences texts that a reader may see as one, behind each other. A place that begins in one part and ends in another is
// fenced, too.
func FenceParts(parts []string) []string { return fenceParts(parts, places) }

// fenceParts fences parts in the places that find returns for all of them behind each other.
func fenceParts(parts []string, find func(string) []int) []string {
	joined := strings.Join(parts, "")
	at := find(joined)
	if len(at) == 0 {
		return parts
	}
	word := fenceWord(joined)
	out, offset := make([]string, len(parts)), 0
	for i, part := range parts {
		var b strings.Builder
		from := 0
		for len(at) > 0 && at[0] <= offset+len(part) {
			b.WriteString(part[from : at[0]-offset])
			b.WriteString(word)
			from, at = at[0]-offset, at[1:]
		}
		b.WriteString(part[from:])
		out[i] = b.String()
		offset += len(part)
	}
	return out
}

// FenceWhere is Fence of a text that is not all of others: only where inside reports that a place is theirs.
func FenceWhere(text string, inside func(at int) bool) string {
	return insert(text, slices.DeleteFunc(places(text), func(at int) bool { return !inside(at) }))
}

// insert puts fence words into a text.
func insert(text string, at []int) string {
	if len(at) == 0 {
		return text
	}
	word := fenceWord(text)
	var b strings.Builder
	b.Grow(len(text) + len(at)*len(word))
	from := 0
	for _, p := range at {
		b.WriteString(text[from:p])
		b.WriteString(word)
		from = p
	}
	b.WriteString(text[from:])
	return b.String()
}

// fenceWord is " (quoted)", or " (quoted-2)" and so on if the text has that already: by accident, or because it was fenced
// before and came back.
func fenceWord(text string) string {
	most := 0
	if strings.Contains(text, " (quoted)") {
		most = 1
	}
	for rest := text; ; {
		_, behind, found := strings.Cut(rest, " (quoted-")
		if !found {
			break
		}
		rest = behind
		digits, _, _ := strings.Cut(behind[:min(len(behind), 20)], ")")
		if n, err := strconv.Atoi(digits); err == nil && n < math.MaxInt {
			most = max(most, n)
		}
	}
	if most == 0 {
		return " (quoted)"
	}
	return " (quoted-" + strconv.Itoa(most+1) + ")"
}

// The letters that make the notes. The tail is that of Repeat.
const (
	ofRepeat = "identicaltoearlier"
	ofResult = "identicaltoaprevioustoolresult"
	tail     = "resultseeabove"
	word     = len("identical")
)

// Bits of all three, in one word: bit i says that the letters up to i were read in a row.
const (
	resultAt = len(ofRepeat)
	tailAt   = resultAt + len(ofResult)

	starts   = 1 | 1<<resultAt | 1<<tailAt
	repeated = 1 << (len(ofRepeat) - 1)
	resulted = 1 << (tailAt - 1)
	tailed   = 1 << (tailAt + len(tail) - 1)
	words    = 1<<(word-1) | 1<<(resultAt+word-1)
	inRepeat = 1<<resultAt - 1
	// opened are the states in which "identical to" was read, and more may follow in another text.
	opened = (1<<(len(ofRepeat)-1)-1)&^(1<<(word+1)-1) | (1<<(tailAt-1)-1)&^(1<<(resultAt+word+1)-1)
)

var forms = masks(ofRepeat + ofResult + tail)

// core is in every note, and most texts have nothing like it.
var core = newPhrase("identicalto")

// places returns where fence words belong. "identical to a previous tool result" is taken for a note wherever it stands;
// "identical to earlier" behind a dash, or if the text has the words that end such a note. What a text begins and may go on
// in the next one counts, too.
func places(text string) []int {
	if !core.mayBeIn(text) {
		return nil
	}
	var s scan
	for at := 0; at < len(text); {
		r, maybe, next := read(text, at)
		at = next
		if l, isLetter := letter(r); isLetter {
			s.letter(l, maybe, at)
		} else {
			s.between.add(r)
		}
	}
	return s.found()
}

// scan looks for the notes in one pass over the letters of a text: bit by bit, it knows all beginnings of notes that end with the letter
// read last.
type scan struct {
	state       uint64 // beginnings wherever they stand
	behindDash  uint64 // of ofRepeat, behind a dash
	behindQuote uint64 // of ofRepeat, behind a quote and a dash
	between     gap    // since the letter read last
	ends        int    // where "identical" was read last
	sure        []int  // places, rising
	unsure      []int  // places that count if the text has the tail
	hasTail     bool
}

// letter reads a letter, -1 for one of another alphabet, which ends before at. It may be white space, too, if maybe.
func (s *scan) letter(l int, maybe bool, at int) {
	m := uint64(0)
	if l >= 0 {
		m = forms[l]
	}
	step := func(from, start uint64) uint64 {
		to := (from&^(repeated|resulted|tailed)<<1 | start) & m
		if maybe {
			to |= from
		}
		return to
	}
	s.state = step(s.state, starts)
	s.behindDash = step(s.behindDash, s.between.ifDash()) & inRepeat
	s.behindQuote = step(s.behindQuote, s.between.ifQuoteDash()) & inRepeat
	if maybe {
		return
	}
	s.between = gap{}
	if l == 'l'-'a' && s.state&words != 0 {
		s.ends = at
	}
	switch {
	case s.behindDash&repeated != 0, s.state&resulted != 0:
		s.sure = once(s.sure, s.ends)
	case s.state&repeated != 0:
		s.unsure = once(s.unsure, s.ends)
	case s.state&tailed != 0:
		s.hasTail = true
	}
}

// found returns the places after the last letter.
func (s *scan) found() []int {
	if s.behindDash&opened != 0 || s.state&opened&^inRepeat != 0 && s.state&words == 0 || s.behindQuote&words != 0 {
		s.sure = once(s.sure, s.ends)
	}
	if !s.hasTail {
		return s.sure
	}
	all := append(s.sure, s.unsure...)
	slices.Sort(all)
	return slices.Compact(all)
}

// once appends a place that is not the last of a list.
func once(list []int, place int) []int {
	if len(list) > 0 && list[len(list)-1] == place {
		return list
	}
	return append(list, place)
}
