package passage

import "iter"

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
