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
func FenceParts(parts []string) []string {
	joined := strings.Join(parts, "")
	at := places(joined)
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

// Bits of all three, in one word.
const (
	resultAt = len(ofRepeat)
	tailAt   = resultAt + len(ofResult)

	starts   = 1 | 1<<resultAt | 1<<tailAt
	repeated = 1 << (len(ofRepeat) - 1)
	resulted = 1 << (tailAt - 1)
	tailed   = 1 << (tailAt + len(tail) - 1)
	words    = 1<<(word-1) | 1<<(resultAt+word-1)
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
	var sure, unsure []int
	var state, behindDash, behindQuote uint64
	ends, hasTail := 0, false
	add := func(list []int) []int {
		if len(list) > 0 && list[len(list)-1] == ends {
			return list
		}
		return append(list, ends)
	}
	var between gap
	for at := 0; at < len(text); {
		r, maybe, next := read(text, at)
		at = next
		l, isLetter := letter(r)
		if !isLetter {
			between.add(r)
			continue
		}
		m := uint64(0)
		if l >= 0 {
			m = forms[l]
		}
		step := func(s, start uint64) uint64 {
			to := (s&^(repeated|resulted|tailed)<<1 | start) & m
			if maybe {
				to |= s
			}
			return to
		}
		state = step(state, starts)
		behindDash = step(behindDash, between.ifDash()) & (1<<resultAt - 1)
		behindQuote = step(behindQuote, between.ifQuoteDash()) & (1<<resultAt - 1)
		if maybe {
			continue // it may be white space
		}
		between = gap{}
		if l == 'l'-'a' && state&words != 0 {
			ends = at
		}
		switch {
		case behindDash&repeated != 0, state&resulted != 0:
			sure = add(sure)
		case state&repeated != 0:
			unsure = add(unsure)
		case state&tailed != 0:
			hasTail = true
		}
	}
	if behindDash&opened != 0 || state&opened&^(1<<resultAt-1) != 0 && state&words == 0 || behindQuote&words != 0 {
		sure = add(sure)
	}
	if !hasTail {
		return sure
	}
	return merged(sure, unsure)
}

// merged returns two rising lists as one.
func merged(a, b []int) []int {
	var out []int
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0] < b[0] {
			out, a = append(out, a[0]), a[1:]
			continue
		}
		if len(a) > 0 && a[0] == b[0] {
			a = a[1:]
		}
		out, b = append(out, b[0]), b[1:]
	}
	return out
}
