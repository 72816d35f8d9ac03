package retriever_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/passage"
)

// benchDocs are k chunks of 1,000 bytes, those of one document overlapping by 200.
func benchDocs(k int) literal {
	docs := make(literal, k)
	for i := range docs {
		var text strings.Builder
		for word := i % 3 * 100; text.Len() < 1000; word++ {
			fmt.Fprintf(&text, "word%d ", word*7+i/3)
		}
		docs[i] = scored(fmt.Sprintf("d%d-%d", i/3, i), 1-float32(i)/float32(k))
		docs[i].PageContent = text.String()
		docs[i].Metadata["source"], docs[i].Metadata["chunk"] = fmt.Sprintf("d%d", i/3), i%3
	}
	return docs
}

// BenchmarkSearch is what each part adds to a search of k = 15 whose retriever costs nothing.
func BenchmarkSearch(b *testing.B) {
	inner := benchDocs(15)
	pilot := newPilot(b, contextpilot.Config{})
	fused := fanIn(b, retriever.FanInConfig{Sources: []retriever.Source{{Retriever: inner}, {Retriever: inner[5:]}, {Retriever: inner[:8]}}})
	ctx := contextpilot.WithConversation(context.Background(), "thread")
	for _, part := range []struct {
		name string
		r    schema.Retriever
	}{
		{"inner", inner},
		{"fan-in of 3", fused},
		{"steady", steady(b, inner, retriever.SteadyOptions{K: 10})},
		{"wrap", retriever.Wrap(pilot, inner)},
		{"wrap with passages", retriever.Wrap(pilot, inner, retriever.WithPassages(passage.Options{}))},
		{"wrap with passages and versioned IDs", retriever.Wrap(pilot, inner, retriever.WithPassages(passage.Options{}), retriever.WithVersionedIDs())},
	} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := part.r.GetRelevantDocuments(ctx, "a question"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFanInParallel is many searches at once.
func BenchmarkFanInParallel(b *testing.B) {
	inner := benchDocs(15)
	f := fanIn(b, retriever.FanInConfig{Sources: []retriever.Source{{Retriever: inner}, {Retriever: inner[5:]}}})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := f.GetRelevantDocuments(context.Background(), "a question"); err != nil {
				b.Error(err)
			}
		}
	})
}
