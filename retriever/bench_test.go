package retriever_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/testkit"
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
	ctx := framework.WithConversation(context.Background(), "thread")
	for _, part := range []struct {
		name string
		r    schema.Retriever
	}{
		{"inner", inner},
		{"fan-in of 3", fused},
		{"steady", steady(b, inner, retriever.SteadyOptions{K: 10})},
		{"wrap", retriever.Wrap(pilot, inner)},
		{"wrap with passages", retriever.Wrap(pilot, inner, retriever.WithPassages(passage.Options{}))},
		{
			"wrap with passages and versioned IDs",
			retriever.Wrap(pilot, inner, retriever.WithPassages(passage.Options{}), retriever.WithVersionedIDs()),
		},
	} {
		b.Run(part.name, func(b *testing.B) { testkit.Median(b, asking(ctx, b, part.r)) })
	}
}

// BenchmarkOverhead is what Wrap adds to a search whose retriever costs nothing, the plan included.
func BenchmarkOverhead(b *testing.B) {
	for _, k := range []int{5, 15, 50} {
		inner, pilot := benchDocs(k), newPilot(b, contextpilot.Config{})
		ctx := framework.WithConversation(context.Background(), "thread")
		wrapped := asking(ctx, b, retriever.Wrap(pilot, inner))
		b.Run(fmt.Sprintf("k=%d/wrap", k), func(b *testing.B) { testkit.Median(b, wrapped) })
		b.Run(fmt.Sprintf("k=%d/added", k), func(b *testing.B) { testkit.Added(b, asking(ctx, b, inner), wrapped) })
	}
}

// asking is one search.
func asking(ctx context.Context, b *testing.B, r schema.Retriever) func() {
	return func() {
		if _, err := r.GetRelevantDocuments(ctx, "a question"); err != nil {
			b.Fatal(err)
		}
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
