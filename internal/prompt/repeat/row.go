package repeat

import (
	"strings"

	"github.com/zeebo/xxh3"
)

// end is where a line stands that may end a block, known by these words, in texts of one label.
type end struct {
	words uint64
	at    int32
}

// several is where more than one such line stands.
const several = -1

func endOf(label, line string) uint64 {
	return xxh3.HashStringSeed(shown(line), xxh3.HashString(label))
}

// Pass enters a text that no reference leads to. It may have a line by which one names what stands elsewhere.
func (m *Memory) Pass(t Text, modulus int) {
	if b := bodyOf(t); m.lines+b.count(maxConversation) <= maxConversation {
		m.ends(t, b.compared(b.from, b.to), several, modulus)
	}
}

// ends enters the lines of a block that stands in full.
func (m *Memory) ends(t Text, block string, from, modulus int) {
	if !t.Merged {
		return
	}
	for line := range strings.SplitSeq(block, "\n") {
		if mayEnd(line, modulus, &m.scratch) {
			e := end{endOf(t.Label, line), int32(from)}
			m.stands(e)
			m.fresh.ends = append(m.fresh.ends, e)
		}
		if from != several {
			from++
		}
	}
}

func (m *Memory) stands(e end) {
	if m.ended == nil {
		m.ended = map[uint64]int32{}
	}
	if at, ok := m.ended[e.words]; ok && at != e.at {
		e.at = several
	}
	m.ended[e.words] = e.at
}

// endsOnly reports whether the last line of a block that stands further up is known by its words.
func (m *Memory) endsOnly(src source, block string) bool {
	at, ok := m.ended[endOf(src.label, block[strings.LastIndexByte(block, '\n')+1:])]
	return ok && at == src.from+int32(strings.Count(block, "\n"))
}

// row is blocks in a row that one reference stands for. An earlier text has them in a row, too.
type row struct {
	ref     string
	at      int // where it was written
	block   string
	source  source // of the last block
	same    bool   // as its source, with the white space around, and no line is like the first one
	first   string // words of the first line
	listing bool
	number  int // of the last line
}

func newRow(block, ref string, at int, src, here source) *row {
	_, number, listing := numbersOf(block)
	first, rest, _ := strings.Cut(block, "\n")
	first = shown(first)
	return &row{
		ref: ref, at: at, block: block, source: src, same: src.exact == here.exact && firstOnly(first, rest), first: first,
		listing: listing, number: number,
	}
}

// firstOnly reports whether no line is like the first one.
func firstOnly(first string, lines string) bool {
	for line := range strings.SplitSeq(lines, "\n") {
		if shown(line) == first {
			return false
		}
	}
	return true
}

// shown is what a reference shows of a line for certain.
func shown(line string) string {
	line = trimmed(line)
	return cut(line[numberEnd(line):], sureWords)
}

// take adds the next block to the row, so that one reference stands for both. It reports false and changes nothing unless the earlier text
// has the block there with the same white space in front, line numbers go on, and the longer reference saves characters.
func (r *row) take(block string, src, here source, chars int) bool {
	number, last, listing := numbersOf(block)
	if src.text != r.source.text || src.from != r.source.to || !r.same || src.exact != here.exact || listing != r.listing || listing &&
		number != r.number+1 {
		return false
	}
	ref := reference(r.block, block, src.label)
	if runes(ref) >= runes(r.ref)+chars || !firstOnly(r.first, block) {
		return false
	}
	r.ref, r.source, r.number = ref, src, last
	return true
}
