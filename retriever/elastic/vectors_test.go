package elastic_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// TestIndexWithoutVectors: the server finds nothing by vectors that it does not have, and says nothing. It is an error that
// names the index and the option, in searches and in writes.
func TestIndexWithoutVectors(t *testing.T) {
	url := storetest.Elasticsearch(t)
	for name, c := range map[string]struct{ mapping, is string }{
		"missing":     {`{}`, "does not exist"},
		"another":     {`{"vector":{"type":"float"}}`, "is a float"},
		"not indexed": {`{"vector":{"type":"dense_vector","dims":64,"index":false}}`, "is not indexed"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := elastic.Options{
				Addresses: []string{url}, Index: fmt.Sprintf("ragpilot-test-vectors-%d", time.Now().UnixNano()),
				Embedder: retrievertest.Embedder{Size: 64}, Layout: elastic.Layout{Mapped: true},
			}
			x := open(t, opts)
			_, err := x.Client().Indices.Create(opts.Index).Raw(strings.NewReader(`{"settings":{"number_of_shards":1,"number_of_replicas":0},
				"mappings":{"properties":` + c.mapping + `}}`)).Do(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = x.Client().Indices.Delete(opts.Index).Do(context.Background()) })
			said := func(err error) bool {
				return strings.Contains(err.Error(), opts.Index) && strings.Contains(err.Error(), "Options.Layout.Vector") &&
					strings.Contains(err.Error(), c.is)
			}
			if err := x.Upsert(t.Context(), []store.Document{{ID: "a", Text: "the otter"}}); !errors.Is(err, elastic.ErrMapping) || !said(err) {
				t.Errorf("Upsert: %v, want ErrMapping", err)
			}
			for _, mode := range []store.Mode{store.Auto, store.Dense} {
				opts.Mode = mode
				if hits, err := open(t, opts).Search(t.Context(), otter); hits != nil || !errors.Is(err, store.ErrBadQuery) || !said(err) {
					t.Errorf("%v: hits %v, %v; want ErrBadQuery that names the index and Options.Layout.Vector", mode, hits, err)
				}
			}
			opts.Mode = store.Lexical
			if _, err := open(t, opts).Search(t.Context(), otter); err != nil {
				t.Errorf("a search by words: %v", err)
			}
		})
	}
}

// TestAliasOfIndexesWithoutVectors: neither an index beside one that has vectors nor one that takes its place is left out
// of a search in silence.
func TestAliasOfIndexesWithoutVectors(t *testing.T) {
	opts := elastic.Options{Addresses: []string{storetest.Elasticsearch(t)}, Embedder: retrievertest.Embedder{Size: 64}, Mode: store.Dense}
	x := create(t, opts)
	opts.Index = x.Name()
	if err := x.Upsert(t.Context(), []store.Document{{ID: "a", Text: "the otter"}}); err != nil {
		t.Fatal(err)
	}
	if hits, err := x.Search(t.Context(), otter); err != nil || len(hits) != 1 {
		t.Fatalf("hits %v, %v; want the otter", hits, err)
	}
	words := elastic.Options{Addresses: opts.Addresses, Index: opts.Index}
	if err := open(t, words).Rebuild(t.Context(), elastic.Schema{Settings: oneShard},
		func(context.Context, *elastic.Index) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if hits, err := x.Search(t.Context(), otter); hits != nil || !errors.Is(err, store.ErrBadQuery) {
		t.Errorf("an index without vectors took the place: hits %v, %v; want ErrBadQuery", hits, err)
	}
	with := open(t, elastic.Options{Addresses: opts.Addresses, Index: opts.Index + "-with", Embedder: opts.Embedder})
	if err := with.Create(t.Context(), elastic.Schema{Settings: oneShard}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = open(t, elastic.Options{Addresses: opts.Addresses, Index: with.Name()}).Drop(context.Background())
	})
	if err := with.Upsert(t.Context(), []store.Document{{ID: "b", Text: "the otter"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := with.Client().Indices.PutAlias(with.Name()+"-000001", opts.Index).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hits, err := open(t, opts).Search(t.Context(), otter); hits != nil || !errors.Is(err, store.ErrBadQuery) ||
		!strings.Contains(err.Error(), opts.Index+"-000002") {
		t.Errorf("one of two indexes is without vectors: hits %v, %v; want ErrBadQuery that names it", hits, err)
	}
}
