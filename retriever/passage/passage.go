package passage

import (
	"slices"
	"strings"
	"unicode"
)

// Chunk is one retrieved chunk of a document.
type Chunk struct {
	// Doc names the document, for [Join] with its version. Only chunks of one document overlap. Empty: the chunk stands
	// alone.
	Doc string
	// Index is the chunk's number in the document, from 0; negative: unknown.
	Index int
	// Start is the offset of Text in the document, in bytes or in characters; negative: unknown. It gives the order of
	// chunks that have no Index, and in [Join] shows whether one follows another without a gap.
	Start int
	// Text is what the store has.
	Text string
}

// Passage is what is sent of one chunk, or of several.
type Passage struct {
	// Text is part of the text of each of its chunks or, after [Join], made of them.
	Text string
	// Chunks are the indexes of the chunks that it stands for, at least one. The first is the one that names it: the chunk
	// it was cut from, the first one of a row. Others are chunks with the same text, chunks that it
	// contains, and the rest of the row in reading order. Every chunk is in one passage.
	Chunks []int
}

// Form says what is made of chunks that overlap.
type Form uint8

const (
	// Cut gives each chunk the sentences that begin in front of the next chunk, so that it stays a block of its own.
	Cut Form = iota
	// Join makes one passage of chunks that overlap or follow each other without a gap.
	Join
)

// Options say how passages are made. The zero value loses nothing.
type Options struct {
	Form Form
	// Trim leaves out what a chunk has of a sentence that was torn when the document was cut and that no other chunk
	// here holds whole. Overlap is there so that some chunk of the store holds it whole. Blocks become shorter and vary
	// less, which saves more than anything else here, but the words are lost: docs/adr/0016 has the figures. A torn
	// beginning is known by its small letter, a torn end by the missing mark; neither is taken if it is half of the chunk.
	Trim bool
}

// Make returns the passages of the chunks, which are given best first. Each passage stands where the best of its
// chunks stood. Two chunks with the same text are one passage, whatever documents they are from. It takes time
// linear in the texts, beside sorting, and does not change its argument.
//
// What overlaps is found by text: the end of one chunk is the beginning of the next, see [MinOverlap].
// Where the rows of a table or other lines repeat, such an end can be no overlap; then one of two equal runs is left out.
func Make(chunks []Chunk, opts Options) []Passage {
	m := maker{chunks: chunks, kept: make([]piece, len(chunks)), opts: opts}
	for i, c := range chunks {
		m.kept[i] = piece{to: len(c.Text), keeper: i, next: none}
	}
	m.sameTexts()
	for _, group := range m.documents() {
		for _, row := range m.rows(group) {
			m.part(row)
		}
	}
	if opts.Trim {
		m.trim()
	}
	return m.passages()
}

// none stands for no chunk.
const none = -1

// maker holds the chunks and what becomes of them.
type maker struct {
	chunks []Chunk
	kept   []piece
	opts   Options
}

// piece is what is left of a chunk: its text[from:to], unless another chunk keeps what it had.
type piece struct {
	from, to   int
	keeper     int  // the chunk in whose passage it is
	next       int  // the chunk behind it in its row, or none
	overlap    int  // the bytes at its end that next begins with
	head, tail bool // a neighbour in the row has what is in front of from, behind to
}

// sameTexts gives chunks to the best one with the same text.
func (m *maker) sameTexts() {
	first := make(map[string]int, len(m.chunks))
	for i, c := range m.chunks {
		if j, again := first[c.Text]; again {
			m.kept[i].keeper = j
			continue
		}
		first[c.Text] = i
	}
}

// documents returns the chunks of each document of which there are several, best document first.
func (m *maker) documents() [][]int {
	var groups [][]int
	at := make(map[string]int, len(m.chunks))
	for i, c := range m.chunks {
		if c.Doc == "" || m.kept[i].keeper != i {
			continue
		}
		g, known := at[c.Doc]
		if !known {
			g = len(groups)
			at[c.Doc] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return slices.DeleteFunc(groups, func(g []int) bool { return len(g) < 2 })
}

// part decides which chunk of a row has which of its sentences.
func (m *maker) part(row []int) {
	if m.opts.Form == Join {
		m.join(row)
		return
	}
	m.cut(row)
	m.giveAway(row)
}

// join leaves every repeat to the chunk in front, and the row to its first chunk.
func (m *maker) join(row []int) {
	for k, i := range row {
		p := &m.kept[i]
		p.keeper, p.head, p.tail = row[0], k > 0, k+1 < len(row)
		if k > 0 {
			p.from = m.kept[row[k-1]].overlap
		}
	}
}

// cut gives each chunk what begins in it before the next chunk does.
func (m *maker) cut(row []int) {
	owned := 0 // the offset in the chunk from which on it keeps its text
	for k, i := range row {
		p := &m.kept[i]
		p.from, p.head = owned, k > 0
		if k+1 == len(row) {
			break
		}
		text := m.chunks[i].Text
		p.to, p.tail = max(cutAt(text, m.chunks[row[k+1]].Text, p.overlap), p.from), true
		owned = p.to - (len(text) - p.overlap)
	}
}

// cutAt returns where a chunk ends if the next one has the rest: at the first sentence that begins in their overlap. If
// none does, the overlap is the end of a sentence that the chunk holds whole, or it is inside one that neither does.
func cutAt(text, next string, overlap int) int {
	begin := len(text) - overlap
	if start, ok := sentenceStart(text, begin, len(text)); ok {
		return start
	}
	if begins(next, skipSpace(next, overlap)) {
		return len(text)
	}
	return begin
}

// giveAway finds the chunks of a row that have nothing left, and gives each to its neighbour.
func (m *maker) giveAway(row []int) {
	last := none
	for k, i := range row {
		p := &m.kept[i]
		if strings.TrimSpace(m.chunks[i].Text[p.from:p.to]) != "" {
			last = i
			continue
		}
		switch {
		case last != none:
			p.keeper = last
		case k+1 < len(row):
			p.keeper = row[k+1]
		}
	}
}

// trim takes torn sentences off the ends that no neighbour has.
func (m *maker) trim() {
	for i := range m.kept {
		p := &m.kept[i]
		text := m.chunks[i].Text
		if !p.head {
			p.from = tornHead(text[:p.to])
		}
		if !p.tail {
			p.to = p.from + tornTail(text[p.from:p.to])
		}
	}
}

// passages collects what is left, in the order of the chunks.
func (m *maker) passages() []Passage {
	out := make([]Passage, 0, len(m.chunks))
	at := make([]int, len(m.chunks)) // chunk → its passage + 1
	for i := range m.chunks {
		lead := m.keeper(i)
		if at[lead] == 0 {
			out = append(out, m.passage(lead))
			at[lead] = len(out)
		}
		if p := &out[at[lead]-1]; !slices.Contains(p.Chunks, i) {
			p.Chunks = append(p.Chunks, i)
		}
	}
	return out
}

func (m *maker) keeper(i int) int {
	for m.kept[i].keeper != i {
		i = m.kept[i].keeper
	}
	return i
}

// passage makes the passage that a chunk leads. White space goes from ends where something was cut off.
func (m *maker) passage(i int) Passage {
	p := m.kept[i]
	text := m.chunks[i].Text[p.from:p.to]
	if m.opts.Form == Cut || p.next == none {
		if len(text) < len(m.chunks[i].Text) {
			text = strings.TrimFunc(text, unicode.IsSpace)
		}
		return Passage{Text: text, Chunks: []int{i}}
	}
	var b strings.Builder
	b.WriteString(text)
	row := []int{i}
	for p.next != none {
		row = append(row, p.next)
		text = m.chunks[p.next].Text
		p = m.kept[p.next]
		b.WriteString(text[p.from:p.to])
	}
	return Passage{Text: b.String(), Chunks: row}
}
