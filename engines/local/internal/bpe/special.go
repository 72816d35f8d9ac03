package bpe

import "slices"

// specials finds the names of special tokens in text.
type specials struct {
	ids map[string]int32
	// lengths of the names that begin with a byte, longest first.
	lengths [256][]int
}

func newSpecials() specials { return specials{ids: map[string]int32{}} }

// add enters a name; the first id of a name counts.
func (s *specials) add(name string, id int32) {
	if _, known := s.ids[name]; known || name == "" {
		return
	}
	s.ids[name] = id
	lengths := &s.lengths[name[0]]
	if !slices.Contains(*lengths, len(name)) {
		*lengths = append(*lengths, len(name))
		slices.SortFunc(*lengths, func(a, b int) int { return b - a })
	}
}

// next returns the first name in text, of several that begin there the longest. from is -1 if there is none.
func (s *specials) next(text string) (from, to int, id int32) {
	for i := range len(text) {
		for _, n := range s.lengths[text[i]] {
			if n > len(text)-i {
				continue
			}
			if id, ok := s.ids[text[i:i+n]]; ok {
				return i, i + n, id
			}
		}
	}
	return -1, -1, -1
}
