package doctor

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestSteps: whatever the texts, a block is never measured wrongly, and nearly always found. Tokens are of uneven length here, the
// first ones of one byte, and the last one of a part may be merged with what follows.
func TestSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const rounds = 2000
	found, prompts := 0, 0
	for range rounds {
		size := 8 + r.IntN(200)
		if r.IntN(2) == 0 {
			size = 8 << r.IntN(6)
		}
		behind := 1 + r.IntN(12) // tokens of the template behind the text
		ends := []int{0}         // of the tokens
		var text strings.Builder
		for len(ends) < 4*size+300 {
			long := 1
			if len(ends) > 26 {
				long = 1 + r.IntN(6)
			}
			ends = append(ends, ends[len(ends)-1]+long)
			for text.Len() < ends[len(ends)-2] {
				text.WriteByte('x')
			}
			if r.IntN(4) == 0 {
				text.WriteByte(' ') // a word ended before
			}
		}
		n := len(ends) - 1
		s := steps{common: (n + behind - 1) / size * size, points: []point{{0, 0}, {ends[n], n + behind}}}
		for i := range mostCuts {
			end := s.end(text.String(), i)
			k, ok := slices.BinarySearch(ends, end)
			if !ok || k == 0 || s.has(end) {
				t.Fatalf("a part of %d bytes, token %d, again %v", end, k, s.has(end))
			}
			s.add(ends[k], k+behind, max(k-r.IntN(2), 0)/size*size)
			if can := s.can(); !slices.Contains(can, size) || len(slices.Compact(slices.Clone(can))) != len(can) {
				t.Fatalf("block of %d, behind the text %d: %v of %+v", size, behind, can, s)
			} else if len(can) == 1 || i == mostCuts-1 {
				prompts += i + 1
				if len(can) == 1 {
					found++
				}
				break
			}
		}
	}
	t.Logf("%d of %d blocks found, %.1f prompts each", found, rounds, float64(prompts)/rounds)
	if found < rounds*9/10 {
		t.Errorf("%d of %d blocks found", found, rounds)
	}
}

// TestStepsOfNonsense: counts that fit no cache give no length, and end.
func TestStepsOfNonsense(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		s := steps{common: 1 + r.IntN(600), points: []point{{0, 0}, {900, 1 + r.IntN(600)}}}
		for i := range mostCuts {
			if end := s.next(i); end < 0 || end > 900 {
				t.Fatalf("a part of %d bytes of 900", end)
			}
			s.add(r.IntN(901), r.IntN(600), r.IntN(600))
			s.can()
		}
	}
}
