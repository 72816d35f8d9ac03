package qdrant_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"

	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// counting notes how many texts it is given at a time.
type counting struct {
	retrievertest.Embedder
	batches *[]int
}

func (c counting) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	*c.batches = append(*c.batches, len(texts))
	return c.Embedder.EmbedDocuments(ctx, texts)
}

// TestBatches: documents are embedded and sent so many at a time, fewer if they are large, and none that a later one of the
// same call replaces.
func TestBatches(t *testing.T) {
	small := func(ids string) (docs []store.Document) {
		for id := range strings.SplitSeq(ids, "") {
			docs = append(docs, store.Document{ID: id, Text: "A page."})
		}
		return docs
	}
	large := small("abc")
	for i := range large {
		large[i].Text = strings.Repeat("word ", 1<<20)
	}
	for name, test := range map[string]struct {
		docs []store.Document
		want []int
	}{
		"none":     {nil, nil},
		"by count": {small("abcdefg"), []int{3, 3, 1}},
		"once":     {small("abcabcad"), []int{3, 1}},
		"by size":  {append(large, small("de")...), []int{1, 1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []int
			_, client := newFake(t, func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				if u, ok := r.(*api.UpsertPoints); ok {
					sent = append(sent, len(u.GetPoints()))
				}
				return next(ctx, r)
			})
			var embedded []int
			opts := with(qdrant.Options{Embedder: counting{batches: &embedded}, Batch: 3}, qdrant.Options{Client: client})
			if err := create(t, opts).Upsert(t.Context(), test.docs); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(sent, test.want) || !slices.Equal(embedded, test.want) {
				t.Errorf("sent %v, embedded %v, want %v", sent, embedded, test.want)
			}
		})
	}
}

// short is an embedder that forgets a text.
type short struct{ retrievertest.Embedder }

func (s short) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	return s.Embedder.EmbedDocuments(ctx, texts[1:])
}

func TestEmbedderThatForgets(t *testing.T) {
	_, client := newFake(t, nil)
	x := create(t, with(qdrant.Options{Embedder: short{}}, qdrant.Options{Client: client}))
	err := x.Upsert(t.Context(), []store.Document{{ID: "a", Text: "A page."}, {ID: "b", Text: "Another."}})
	if err == nil || !strings.Contains(err.Error(), "1 vectors of 2 texts") {
		t.Errorf("error %v, want the two numbers", err)
	}
}

// Without IDs there is nothing to delete, and the server is not asked.
func TestDeleteWithoutIDs(t *testing.T) {
	calls := 0
	_, client := newFake(t, func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if _, ok := r.(*api.DeletePoints); ok {
			calls++
		}
		return next(ctx, r)
	})
	x := create(t, with(qdrant.Options{Embedder: retrievertest.Embedder{}}, qdrant.Options{Client: client}))
	for i, ids := range [][]string{nil, {"a"}} {
		if err := x.Delete(t.Context(), "", ids...); err != nil || calls != i {
			t.Errorf("Delete(%q) = %v, the server was asked %d times, want %d", ids, err, calls, i)
		}
	}
}
