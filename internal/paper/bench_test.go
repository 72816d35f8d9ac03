package paper_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/internal/paper"
)

// BenchmarkBuild clusters 64 contexts that have all their docs in common, in other orders: time grows with k, not with its square.
func BenchmarkBuild(b *testing.B) {
	for _, k := range []int{15, 128, 1024} {
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			contexts := make([][]paper.Doc, 64)
			for i := range contexts {
				for x := range k {
					contexts[i] = append(contexts[i], paper.Doc((x+i*k/64)%k))
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := paper.NewTree(paper.Options{Alpha: paper.DefaultAlpha}).Build(context.Background(), contexts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
