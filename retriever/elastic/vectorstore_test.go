package elastic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// textQuery is a query in the server's terms that is no map, as types of go-elasticsearch are.
type textQuery struct {
	Match struct {
		Text string `json:"text"`
	} `json:"match"`
}

func TestServersFilter(t *testing.T) {
	testServersFilter(t, func(text string) *textQuery {
		q := &textQuery{}
		q.Match.Text = text
		return q
	})
}

// testServersFilter: a query in the server's terms, which kind makes, restricts beside Options.Filter, and what was found
// can be added again in a layout that keeps metadata beside ID and version.
func testServersFilter[Query any](t *testing.T, kind func(text string) *Query) {
	docs := []schema.Document{
		{PageContent: "A city in Texas", Metadata: map[string]any{"kind": "city"}},
		{PageContent: "A country in Asia", Metadata: map[string]any{"kind": "country"}},
	}
	for name, test := range map[string]struct {
		always, now *Query
		want        int
	}{
		"nil": {nil, nil, 2}, "query's": {nil, kind("city"), 1}, "both": {kind("country"), kind("city"), 0},
		"options'": {kind("country"), nil, 1},
	} {
		x := create(t, elastic.Options{
			Addresses: []string{storetest.Elasticsearch(t)}, Layout: elastic.Layout{Metadata: elastic.TopLevel}, Filter: test.always,
		})
		space := vectorstores.WithNameSpace(x.Name()) // as in langchaingo's store for OpenSearch
		if _, err := x.AddDocuments(t.Context(), docs, space); err != nil {
			t.Fatal(err)
		}
		found, err := x.SimilaritySearch(t.Context(), "in", 5, space, vectorstores.WithFilters(test.now))
		if err != nil || len(found) != test.want {
			t.Errorf("%s: found %v, %v, want %d", name, found, err, test.want)
		}
		if _, err := x.AddDocuments(t.Context(), found); err != nil {
			t.Errorf("%s: added again: %v", name, err)
		}
		for i := range found { // whose versions are others
			found[i].PageContent += ", and its capital"
		}
		if _, err := x.AddDocuments(t.Context(), found); err != nil {
			t.Errorf("%s: added again with other texts: %v", name, err)
		}
	}
}

// TestFiltersThatCannotBe: what is no query, and a query where nothing is searched.
func TestFiltersThatCannotBe(t *testing.T) {
	x := open(t, elastic.Options{Client: &fakeServer{status: 200, body: hitsOf(1)}, Index: "docs"})
	for _, filter := range []any{7, "lang", []string{"lang"}, json.RawMessage("{")} {
		docs, err := x.SimilaritySearch(t.Context(), "city", 5, vectorstores.WithFilters(filter))
		if docs != nil || !errors.Is(err, store.ErrBadOption) || !strings.Contains(err.Error(), "WithFilters") {
			t.Errorf("%v: found %v, %v; want ErrBadOption", filter, docs, err)
		}
	}
	_, err := x.AddDocuments(t.Context(), []schema.Document{{PageContent: "A page."}}, vectorstores.WithFilters(&textQuery{}))
	if !errors.Is(err, store.ErrBadOption) || !strings.Contains(err.Error(), "WithFilters") {
		t.Errorf("AddDocuments with a filter: %v, want ErrBadOption", err)
	}
}

// TestEmbedderOfAWordSearch: a search that compares words has no use for an embedder.
func TestEmbedderOfAWordSearch(t *testing.T) {
	e, f := retrievertest.Embedder{Size: 2}, &fakeServer{status: 200, body: hitsOf(1)}
	x := open(t, elastic.Options{Client: f, Index: "docs", Embedder: e, Mode: store.Lexical})
	docs, err := x.SimilaritySearch(t.Context(), "city", 5, vectorstores.WithEmbedder(e))
	if docs != nil || !errors.Is(err, store.ErrBadOption) || !strings.Contains(err.Error(), "WithEmbedder") ||
		!strings.Contains(err.Error(), "Options.Mode") {
		t.Errorf("found %v, %v; want ErrBadOption that names both options", docs, err)
	}
}

// TestForeignDocumentsAreReplaced: a document that another program wrote under an _id of its own is stored there again and
// removed there, and no other tenant's is.
func TestForeignDocumentsAreReplaced(t *testing.T) {
	opts := elastic.Options{
		Addresses: []string{storetest.Elasticsearch(t)}, Index: fmt.Sprintf("ragpilot-test-replaced-%d", time.Now().UnixNano()),
		Layout: elastic.Layout{ID: "slug", Text: "body", Metadata: elastic.TopLevel, Tenant: "owner", Mapped: true},
	}
	x, ctx := open(t, opts), t.Context()
	foreign(t, x, `{"slug":{"type":"keyword"},"owner":{"type":"keyword"},"body":{"type":"text"}}`)
	for id, body := range map[string]string{
		"1": `{"slug":"a","owner":"acme","body":"The otter swims."}`, // _ids and slugs in each other's way
		"a": `{"slug":"1","owner":"acme","body":"The otter swims."}`,
		"2": `{"owner":"acme","body":"The otter swims."}`,
		"3": `{"slug":"a","owner":"ajax","body":"The otter swims."}`,
	} {
		do(t, x, http.MethodPut, x.Name()+"/_doc/"+id+"?refresh=true", body)
	}
	found := func(tenant string) []schema.Document {
		docs, err := x.SimilaritySearch(ctx, "otter", 9, vectorstores.WithNameSpace(tenant))
		if err != nil {
			t.Fatal(err)
		}
		return docs
	}
	texts := func(docs []schema.Document) map[string]string {
		out := map[string]string{}
		for _, d := range docs {
			id, _ := d.Metadata["id"].(string)
			if _, twice := out[id]; twice {
				t.Errorf("two documents have the ID %q", id)
			}
			out[id] = d.PageContent
		}
		return out
	}
	for _, text := range []string{"The otter dives.", "The otter sleeps."} {
		docs := found("acme")
		for i := range docs {
			docs[i].PageContent = text
		}
		if _, err := x.AddDocuments(ctx, docs, vectorstores.WithNameSpace("acme")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"a": text, "1": text, "2": text}, texts(found("acme"))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if err := x.Delete(ctx, "acme", "a", "2"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"1": "The otter sleeps."}, texts(found("acme"))); diff != "" {
		t.Errorf("after Delete: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "The otter swims."}, texts(found("ajax"))); diff != "" {
		t.Errorf("another tenant's: -want +got:\n%s", diff)
	}
}

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
			foreign(t, x, c.mapping)
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
	do(t, with, http.MethodPut, with.Name()+"-000001/_alias/"+opts.Index, "")
	if hits, err := open(t, opts).Search(t.Context(), otter); hits != nil || !errors.Is(err, store.ErrBadQuery) ||
		!strings.Contains(err.Error(), opts.Index+"-000002") {
		t.Errorf("one of two indexes is without vectors: hits %v, %v; want ErrBadQuery that names it", hits, err)
	}
}
