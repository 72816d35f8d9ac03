package order

import (
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"
)

// loader numbers texts and finds equal rows.
type loader struct {
	part
	byText map[string]int32
	bySet  map[uint64][]int32
	of     []int32 // by row added: its place in sets
	rows   []int   // by row added: its number
	size   int     // bytes held, roughly
	ids    []int32
	key    []byte
}

// Bytes that a text and a cell take besides the text itself.
const (
	textBytes = 64
	cellBytes = 16
)

func newLoader() *loader {
	return &loader{byText: map[string]int32{}, bySet: map[uint64][]int32{}}
}

func (l *loader) add(row int, units []string) {
	l.ids, l.key = l.ids[:0], l.key[:0]
	for _, s := range units {
		u, ok := l.byText[s]
		if !ok {
			u = int32(len(l.text))
			text := []byte(s)
			l.text = append(l.text, text)
			l.byText[string(text)] = u
			l.size += 2*len(s) + textBytes
		}
		l.ids = append(l.ids, u)
		l.key = binary.LittleEndian.AppendUint32(l.key, uint32(u))
	}
	l.rows = append(l.rows, row)
	h := xxh3.Hash(l.key)
	for _, r := range l.bySet[h] {
		if slices.Equal(l.sets[r], l.ids) {
			l.of = append(l.of, r)
			return
		}
	}
	r := int32(len(l.sets))
	l.bySet[h] = append(l.bySet[h], r)
	l.sets = append(l.sets, slices.Clone(l.ids))
	l.of = append(l.of, r)
	l.size += cellBytes * (len(units) + 4)
}

// effort returns the default of [Options].Effort.
func (l *loader) effort() int {
	units := 0
	for _, set := range l.sets {
		units += len(set)
	}
	return min(units, mostEffort/unitEffort) * unitEffort
}
