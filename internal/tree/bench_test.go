package tree_test

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/internal/tree"
)

func paths(n, k int) [][]tree.Elem {
	out := make([][]tree.Elem, n)
	seed := uint64(1)
	for i := range out {
		for range k {
			seed = seed*6364136223846793005 + 1442695040888963407
			out[i] = append(out[i], tree.Elem{Key: seed >> 60, Tokens: 200})
		}
	}
	return out
}

// Removal costs the path, not the index.
func BenchmarkInsertRemove(b *testing.B) {
	for _, live := range []int{1_000, 10_000, 100_000} {
		for _, k := range []int{5, 15, 100} {
			if live*k > 2_000_000 {
				continue
			}
			b.Run(fmt.Sprintf("live=%d/k=%d", live, k), func(b *testing.B) {
				x := tree.New(0, 0, nil)
				ps := paths(live+1024, k)
				for i, p := range ps[:live] {
					x.Insert(fmt.Sprint(i), "", p)
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					x.Insert("guest", "", ps[live+i%1024])
					x.Remove("guest")
					i++
				}
			})
		}
	}
}
