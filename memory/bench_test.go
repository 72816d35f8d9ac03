package memory_test

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/memory"
)

// BenchmarkSearch asks for the best five of a scope.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{100, 1_000} {
		b.Run(fmt.Sprintf("memories=%d", n), func(b *testing.B) {
			store := newStore(b, memory.Config{})
			var texts []string
			for i := range n {
				texts = append(texts, fmt.Sprintf("Fact %d: person %d likes dish %d and lives in town %d.", i, i%17, i%31, i%53))
			}
			mustAdd(b, store, texts...)
			b.ReportAllocs()
			for b.Loop() {
				hits, err := store.Search(b.Context(), ana, "Who likes dish 7 in town 11?", 5, memory.SearchOptions{})
				if err != nil || len(hits) != 5 {
					b.Fatalf("%d hits, %v", len(hits), err)
				}
			}
		})
	}
}
