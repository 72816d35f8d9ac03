package bleve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// corpus makes n files of one block each, with words w0, w1, … drawn from a Zipf distribution; the same for equal n.
func corpus(n int) fstest.MapFS {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible on purpose
	zipf := rand.NewZipf(rng, 1.1, 2, 20_000)
	fsys := fstest.MapFS{}
	for i := range n {
		var b strings.Builder
		for range 80 + rng.IntN(60) {
			fmt.Fprintf(&b, "w%d ", zipf.Uint64())
		}
		fsys[fmt.Sprintf("%d/%06d.md", i%10, i)] = &fstest.MapFile{Data: []byte(b.String())}
	}
	return fsys
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		x := open(b, corpus(n), bleve.Options{})
		for _, k := range []int{5, 15, 50} {
			b.Run(fmt.Sprintf("blocks=%d/k=%d", n, k), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					find(b, x, "w7 w30 w200 w1000 w5000", k)
				}
			})
		}
		b.Run(fmt.Sprintf("blocks=%d/k=15/parallel", n), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := x.Search(b.Context(), "w7 w30 w200 w1000 w5000", 15); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// BenchmarkOverhead is what the index adds to the same search in bleve itself, as blocks and as langchaingo's documents.
func BenchmarkOverhead(b *testing.B) {
	x := open(b, corpus(1_000), bleve.Options{})
	const question = "w7 w30 w200 w1000 w5000"
	for _, k := range []int{5, 15, 50} {
		bare := func() {
			if n, err := x.Bare(context.Background(), question, k); err != nil || n < k {
				b.Fatal(n, err)
			}
		}
		ours := func() {
			if _, err := x.Search(context.Background(), question, k); err != nil {
				b.Fatal(err)
			}
		}
		documents := x.Retriever(k)
		langchaingo := func() {
			if _, err := documents.GetRelevantDocuments(context.Background(), question); err != nil {
				b.Fatal(err)
			}
		}
		testkit.Beside(b, fmt.Sprintf("k=%d", k), bare, ours)
		testkit.Beside(b, fmt.Sprintf("k=%d/documents", k), bare, langchaingo)
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{100, 1_000} {
		fsys := corpus(n)
		b.Run(fmt.Sprintf("blocks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x, err := bleve.New(fsys, bleve.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if err := x.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
