package passage

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// rowsByText is [maker.rows] for chunks whose places are not known: the beginnings of all chunks are looked for in all of
// them at once, with a rolling hash.
func (m *maker) rowsByText(group []int) [][]int {
	found := m.beginnings(group)
	// The longest overlaps are the neighbours; a chunk has one on each side.
	slices.SortStableFunc(found, func(a, b border) int { return cmp.Compare(b.length, a.length) })
	front := map[int]int{} // chunk → the one in front of it
	for _, f := range found {
		_, taken := front[f.second]
		if taken || m.kept[f.first].next != none || m.first(front, f.first) == f.second {
			continue
		}
		if m.kept[f.first].keeper != f.first || m.kept[f.second].keeper != f.second {
			continue
		}
		front[f.second] = f.first
		m.kept[f.first].next, m.kept[f.first].overlap = f.second, f.length
	}
	var rows [][]int
	for _, i := range group {
		if _, has := front[i]; has || m.kept[i].next == none {
			continue
		}
		row := []int{i}
		for j := m.kept[i].next; j != none; j = m.kept[j].next {
			row = append(row, j)
		}
		rows = append(rows, row)
	}
	return rows
}

// first returns the first chunk of the row that a chunk is in.
func (m *maker) first(front map[int]int, i int) int {
	for {
		j, ok := front[i]
		if !ok {
			return i
		}
		i = j
	}
}

// border says that a chunk's end is another one's beginning.
type border struct{ first, second, length int }

// maxHits bounds how many places of one chunk are compared byte for byte, so that texts that repeat themselves cost
// linear time, too.
const maxHits = 64

// beginnings returns all overlaps of the chunks. A chunk that another one holds is given to it.
func (m *maker) beginnings(group []int) []border {
	const width = MinOverlapUnplaced
	heads := make(map[uint64][]int, len(group))
	var known filter
	for _, i := range group {
		if text := m.chunks[i].Text; len(text) >= width {
			h := hashOf(text[:width])
			heads[h] = append(heads[h], i)
			known.add(h)
		}
	}
	var found []border
	for _, i := range group {
		text := m.chunks[i].Text
		hits := 0
		for at, h := range windows(text, width) {
			if !known.may(h) {
				continue
			}
			for _, j := range heads[h] {
				if j == i || hits == maxHits {
					continue
				}
				hits++
				switch rest, other := text[at:], m.chunks[j].Text; {
				case len(other) <= len(rest) && strings.HasPrefix(rest, other):
					if len(other) < len(text) && m.kept[j].keeper == j {
						m.kept[j].keeper = i
					}
				case strings.HasPrefix(other, rest):
					found = append(found, border{i, j, len(rest)})
				}
			}
		}
	}
	return found
}

// base is that of the rolling hash, an odd number without a pattern in its bits.
const base uint64 = 0x9E3779B97F4A7C15

func hashOf(text string) uint64 {
	h := uint64(0)
	for i := range len(text) {
		h = h*base + uint64(text[i])
	}
	return h
}

// windows walks the windows of so many bytes of a text, each with its offset and its hash. Linear in the text.
func windows(text string, width int) iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		if len(text) < width {
			return
		}
		top := uint64(1) // base to the power of width
		for range width {
			top *= base
		}
		h := hashOf(text[:width])
		for at := 0; ; at++ {
			if !yield(at, h) || at+width == len(text) {
				return
			}
			h = h*base + uint64(text[at+width]) - top*uint64(text[at])
		}
	}
}

// filter recognises most hashes that were not added, so that the map is asked less often.
type filter [256]uint64

func (f *filter) add(h uint64)      { f[h>>6&255] |= 1 << (h & 63) }
func (f *filter) may(h uint64) bool { return f[h>>6&255]&(1<<(h&63)) != 0 }
