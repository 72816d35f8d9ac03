package passage

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// maxApart is the largest difference of the numbers of two chunks that may overlap: neighbours that share up to seven
// eighths of their text.
const maxApart = 8

// rows links the chunks of one document that overlap, or with [Join] follow each other, and returns rows of at least two
// in reading order. Chunks that stand in another one go to that one.
func (m *maker) rows(group []int) [][]int {
	order, known := m.reading(group)
	if !known {
		return m.rowsByText(group)
	}
	var rows [][]int
	row := order[:0:0]
	end := func() {
		if len(row) > 1 {
			rows = append(rows, row)
		}
		row = nil
	}
	for _, i := range order {
		for len(row) > 0 && m.inside(row[len(row)-1], i) {
			row = m.drop(row, i)
		}
		if len(row) == 0 {
			row = append(row, i)
			continue
		}
		last := row[len(row)-1]
		switch n, ok := m.follows(last, i); {
		case m.inside(i, last):
			m.kept[i].keeper = last
		case ok:
			m.kept[last].next, m.kept[last].overlap = i, n
			row = append(row, i)
		default:
			end()
			row = append(row, i)
		}
	}
	end()
	return rows
}

// drop gives the last chunk of a row to chunk i, which holds it, and unlinks it.
func (m *maker) drop(row []int, i int) []int {
	m.kept[row[len(row)-1]].keeper = i
	row = row[:len(row)-1]
	if len(row) > 0 {
		m.kept[row[len(row)-1]].next = none
	}
	return row
}

// reading returns the chunks in the order of the document, if it is known of all of them.
func (m *maker) reading(group []int) (order []int, known bool) {
	index, start := true, true
	for _, i := range group {
		index = index && m.chunks[i].Index >= 0
		start = start && m.chunks[i].Start >= 0
	}
	if !index && !start {
		return nil, false
	}
	order = slices.Clone(group)
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := m.chunks[i], m.chunks[j]
		if index {
			return cmp.Compare(a.Index, b.Index)
		}
		return cmp.Compare(a.Start, b.Start)
	})
	return order, true
}

// inside reports whether all of chunk i stands in chunk j.
func (m *maker) inside(i, j int) bool {
	return m.near(i, j) && holds(m.chunks[j].Text, m.chunks[i].Text)
}

// near reports whether two chunks may overlap by what is known of their places.
func (m *maker) near(i, j int) bool {
	a, b := m.chunks[i], m.chunks[j]
	if a.Index >= 0 && b.Index >= 0 && max(a.Index-b.Index, b.Index-a.Index) > maxApart {
		return false
	}
	if a.Start < 0 || b.Start < 0 {
		return true
	}
	return a.Start < b.Start+len(b.Text) && b.Start < a.Start+len(a.Text) // in characters there are fewer
}

// follows returns by how many bytes chunk j overlaps the end of chunk i; with [Join] also 0, if it follows at once.
func (m *maker) follows(i, j int) (int, bool) {
	a, b := m.chunks[i], m.chunks[j]
	if m.near(i, j) {
		if n := placedOverlap(a, b); n > 0 {
			return n, true
		}
		if n := overlap(a.Text, b.Text); n > 0 {
			return n, true
		}
		if a.Index >= 0 && b.Index == a.Index+1 {
			if n := shortOverlap(a.Text, b.Text); n > 0 {
				return n, true
			}
		}
	}
	if m.opts.Form != Join || a.Start < 0 || b.Start < 0 {
		return 0, false
	}
	gap := b.Start - a.Start
	return 0, gap == len(a.Text) || gap == utf8.RuneCountInString(a.Text)
}

// placedOverlap returns the overlap by the offsets of two chunks, if they count bytes and the texts agree.
func placedOverlap(a, b Chunk) int {
	if a.Start < 0 || b.Start < a.Start {
		return 0
	}
	n := a.Start + len(a.Text) - b.Start
	if n <= 0 || n >= len(a.Text) || n >= len(b.Text) || a.Text[len(a.Text)-n:] != b.Text[:n] {
		return 0
	}
	return n
}
