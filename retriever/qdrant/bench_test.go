package qdrant_test

import (
	"context"
	"fmt"
	"testing"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// fixed is an embedder that costs nothing.
type fixed []float32

func (f fixed) EmbedQuery(context.Context, string) ([]float32, error) { return f, nil }

func (f fixed) EmbedDocuments(context.Context, []string) ([][]float32, error) { return nil, nil }

// answering is a client whose transport is a function: every query gets the same answer of n points at once.
func answering(b *testing.B, n int) *api.Client {
	b.Helper()
	answer := &api.QueryResponse{}
	for i := range n {
		id := fmt.Sprintf("doc-%d", i)
		answer.Result = append(answer.Result, &api.ScoredPoint{
			Id: api.NewIDUUID(qdrant.PointID("", id)), Score: 1 / float32(i+1),
			Payload: api.NewValueMap(map[string]any{
				"id": id, "text": "A text of some length.", "version": "0123456789abcdef0123456789abcdef",
				"metadata": map[string]any{"source": "guide.md", "page": i},
			}),
		})
	}
	client, err := api.NewClient(&api.Config{
		PoolSize: 1, SkipCompatibilityCheck: true,
		GrpcOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(
			func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
				reply.(*api.QueryResponse).Result = answer.GetResult()
				return nil
			})},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	return client
}

// BenchmarkOverhead is what the index adds to a search: "client" is the official client alone, "index" is ours around it,
// both without a transport and without embedding.
func BenchmarkOverhead(b *testing.B) {
	vector := make(fixed, 384)
	for _, k := range []int{5, 15, 50} {
		client := answering(b, k+16)
		request := &api.QueryPoints{CollectionName: "c", Query: api.NewQueryDense(vector)}
		x, err := qdrant.Open(qdrant.Options{Client: client, Collection: "c", Embedder: vector})
		if err != nil {
			b.Fatal(err)
		}
		q := store.Query{Text: "question", K: k, Filter: store.Eq("lang", "en")}
		bare := func() {
			if _, err := client.Query(context.Background(), request); err != nil {
				b.Fatal(err)
			}
		}
		search := func() {
			if _, err := x.Search(context.Background(), q); err != nil {
				b.Fatal(err)
			}
		}
		testkit.Beside(b, fmt.Sprintf("k=%d", k), bare, search)
		b.Run(fmt.Sprintf("k=%d/parallel", k), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := x.Search(b.Context(), q); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// BenchmarkReal is a whole search against a real engine: embedding, gRPC, search.
func BenchmarkReal(b *testing.B) {
	addr := storetest.Qdrant(b)
	for _, v := range variants {
		if v.name != "dense" && v.name != "rrf" {
			continue
		}
		b.Run(v.name, func(b *testing.B) {
			x := create(b, with(v.opts, qdrant.Options{Addr: addr, Collection: newCollection(b, addr)}))
			var docs []store.Document
			for i := range 2000 {
				docs = append(docs, store.Document{ID: fmt.Sprint(i), Text: fmt.Sprintf("Entry number%d of register%d.", i, i%40)})
			}
			if err := x.Upsert(b.Context(), docs); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.Search(b.Context(), store.Query{Text: "entry of register7", K: 15}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWords is the encoding of a document of 200 words and of a question.
func BenchmarkWords(b *testing.B) {
	text := ""
	for i := range 200 {
		text += fmt.Sprintf("word%d ", i%90)
	}
	b.Run("document", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := (qdrant.Words{}).SparseDocuments(b.Context(), []string{text}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("query", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := (qdrant.Words{}).SparseQuery(b.Context(), "Where is word7 of the register?"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
