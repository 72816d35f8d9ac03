package online

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPeek: it finds what Look finds and arranges as Look would, and leaves no trace, neither in what is learned nor in the
// request in hand.
func TestPeek(t *testing.T) {
	h, twin := New(), New()
	rnd := rand.New(rand.NewPCG(5, 6))
	draw := func() []Block {
		var out []Block
		for _, k := range rnd.Perm(24)[:8] {
			out = append(out, Block{Key: uint64(k + 24*rnd.IntN(2)), Tokens: 10 + k})
		}
		return out
	}
	used := map[string]int{}
	for i := range 400 {
		blocks, other := draw(), draw()
		h.Peek(other).Arrange(nil, nil)
		peeked, rule := h.Peek(blocks).Arrange(nil, nil)
		want, wantRule := twin.Look(blocks).Arrange(nil, nil)
		got, gotRule := h.Look(blocks).Arrange(nil, nil)
		h.Peek(other).Arrange(nil, nil) // with a request in hand
		if !slices.Equal(got, want) || gotRule != wantRule || !slices.Equal(peeked, want) || rule != wantRule {
			t.Fatalf("request %d: Peek %v (%s), Look %v (%s), without Peek %v (%s)", i, peeked, rule, got, gotRule, want, wantRule)
		}
		if fmt.Sprint(h.credit) != fmt.Sprint(twin.credit) {
			t.Fatalf("request %d: credit %v, without Peek %v", i, h.credit, twin.credit)
		}
		h.Remember()
		twin.Remember()
		used[rule]++
	}
	if len(used) < 2 {
		t.Errorf("only ever one rule: %v", used)
	}
	if n := h.Familiar([]Block{{Key: 1, Tokens: 5}, {Key: 1000, Tokens: 7}}); n != 5 {
		t.Errorf("%d familiar tokens, want 5", n)
	}
}
