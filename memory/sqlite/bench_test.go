package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ragpilot/ragpilot/memory"
)

// BenchmarkSearch reads all vectors of a scope from the file.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("memories=%d", n), func(b *testing.B) {
			store := open(b, filepath.Join(b.TempDir(), "memories.db"))
			defer store.Close()
			scope := memory.Scope{User: "ana"}
			var texts []string
			for i := range n {
				texts = append(texts, fmt.Sprintf("Fact %d: person %d likes dish %d and lives in town %d.", i, i%17, i%31, i%53))
			}
			mustAdd(b, store, scope, texts...)
			b.ReportAllocs()
			for b.Loop() {
				hits, err := store.Search(b.Context(), scope, "Who likes dish 7 in town 11?", 5, memory.SearchOptions{})
				if err != nil || len(hits) != 5 {
					b.Fatalf("%d hits, %v", len(hits), err)
				}
			}
		})
	}
}

// BenchmarkAdd stores one memory at a time, with the wait for the disk.
func BenchmarkAdd(b *testing.B) {
	store := open(b, filepath.Join(b.TempDir(), "memories.db"))
	defer store.Close()
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		mustAdd(b, store, memory.Scope{User: "ana"}, fmt.Sprint("Fact number ", i))
		i++
	}
}
