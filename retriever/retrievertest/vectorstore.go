package retrievertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// vectorStore returns the store as langchaingo sees it. A store without these methods is not checked.
func vectorStore(t *testing.T, x Store) vectorstores.VectorStore {
	t.Helper()
	v, ok := x.(vectorstores.VectorStore)
	if !ok {
		t.Skip("the store is no vectorstores.VectorStore")
	}
	return v
}

func add(t *testing.T, v vectorstores.VectorStore, docs []schema.Document, options ...vectorstores.Option) []string {
	t.Helper()
	got, err := v.AddDocuments(within(t), docs, options...)
	if err != nil {
		t.Fatalf("AddDocuments: %v", err)
	}
	return got
}

func similar(t *testing.T, v vectorstores.VectorStore, text string, n int, options ...vectorstores.Option) []schema.Document {
	t.Helper()
	docs, err := v.SimilaritySearch(within(t), text, n, options...)
	if err != nil {
		t.Fatalf("SimilaritySearch %q: %v", text, err)
	}
	for i, d := range docs {
		if d.Score > 1.0001 || d.Score < -1.0001 || i > 0 && d.Score > docs[i-1].Score {
			t.Errorf("%q scores %v, document %d of the result", d.PageContent, d.Score, i+1)
		}
	}
	return docs
}

// places are documents as langchaingo's loaders make them, without IDs.
func places() []schema.Document {
	place := func(text string, area int) schema.Document {
		return schema.Document{PageContent: text, Metadata: map[string]any{"area": area, "kind": strings.Fields(text)[1]}}
	}
	return []schema.Document{
		place("A city in Texas", 3251), place("A country in Asia", 2342), place("A country in Peru", 432),
		place("A nation in Oceania", 6531), place("A city in England", 4324),
	}
}

func contents(docs []schema.Document) []string {
	out := make([]string, len(docs))
	for i, d := range docs {
		out[i] = d.PageContent
	}
	slices.Sort(out)
	return out
}

// checkVectorStore: documents are added and found as in langchaingo's own stores, and adding them again changes nothing.
func checkVectorStore(t *testing.T, s Subject) {
	x := s.New(t)
	v := vectorStore(t, x)
	if got := add(t, v, nil); len(got) != 0 {
		t.Errorf("IDs %q of no documents", got)
	}
	got := add(t, v, places())
	if distinct := slices.Compact(slices.Sorted(slices.Values(got))); len(distinct) != len(places()) || distinct[0] == "" {
		t.Fatalf("IDs %q, want one for each document", got)
	}
	docs := similar(t, v, "England", 3)
	if len(docs) == 0 || docs[0].PageContent != "A city in England" || docs[0].Metadata[store.KeyID] != got[4] {
		t.Fatalf("found %v, want the city in England with the ID %q", docs, got[4])
	}
	if diff := equalMetadata(map[string]any{"area": 4324}, map[string]any{"area": docs[0].Metadata["area"]}); diff != "" {
		t.Errorf("metadata: -want +got:\n%s", diff)
	}
	if again := add(t, v, append(places(), docs[0])); !slices.Equal(again, append(slices.Clone(got), got[4])) {
		t.Errorf("added again the IDs are %q, want %q and the last one again", again, got)
	}
	if all := similar(t, v, "A city country nation", 20); len(all) != len(places()) {
		t.Errorf("added twice there are %q", contents(all))
	}
	checkEdited(t, x, v, got[4])
	own := schema.Document{PageContent: "A desert in Chile", Metadata: map[string]any{"id": "mine"}}
	if ids := add(t, v, []schema.Document{own}); !slices.Equal(ids, []string{"mine"}) {
		t.Errorf("IDs %q, want that of the metadata", ids)
	}
	hit(t, ask(t, x, "desert", 3), "mine")
	chunks := []schema.Document{
		{PageContent: "A first chunk", Metadata: map[string]any{"id": "page"}},
		{PageContent: "A second chunk", Metadata: map[string]any{"id": "page"}},
	}
	if _, err := v.AddDocuments(within(t), chunks); !errors.Is(err, store.ErrBadDocument) || !strings.Contains(err.Error(), `"page"`) {
		t.Errorf("two texts of one ID: %v, want ErrBadDocument with the ID", err)
	}
	if _, err := v.SimilaritySearch(within(t), "England", 0); !errors.Is(err, store.ErrBadQuery) ||
		!strings.Contains(err.Error(), "numDocuments = 0") {
		t.Errorf("numDocuments = 0: %v, want ErrBadQuery that says so", err)
	}
}

// checkEdited: a document that was found is added again with another text, and is stored as one that was never found.
func checkEdited(t *testing.T, x Store, v vectorstores.VectorStore, id string) {
	t.Helper()
	const text = "A city in England, and its port"
	docs := similar(t, v, "England", 1)
	docs[0].PageContent = text
	if got := add(t, v, docs); !slices.Equal(got, []string{id}) || docs[0].Metadata[store.KeyVersion] == nil {
		t.Errorf("a found document with another text has the ID %q and the metadata %v, want %q, and the caller's own", got, docs[0].Metadata, id)
	}
	for _, h := range ask(t, x, "port", 1) {
		if _, stored := h.Metadata[store.KeyVersion]; stored || h.ID != id || h.Text != text || h.Version != store.Version(text) {
			t.Errorf("found %+v, want the new text, its version, and no version in the metadata", h)
		}
	}
	if all := similar(t, v, "A city country nation", 20); len(all) != len(places()) {
		t.Errorf("with another text for one there are %q", contents(all))
	}
}

// checkVectorStoreOptions: each of langchaingo's options does what it says, or is an error that names it.
func checkVectorStoreOptions(t *testing.T, s Subject) {
	v := vectorStore(t, s.New(t))
	known := func(_ context.Context, d schema.Document) bool { return d.PageContent == "A country in Peru" }
	if got := add(t, v, places(), vectorstores.WithDeduplicater(known)); len(got) != len(places())-1 {
		t.Errorf("%d IDs of %d documents of which one is known", len(got), len(places()))
	}
	if got := contents(similar(t, v, "country", 20)); slices.Contains(got, "A country in Peru") {
		t.Errorf("the document that is known was stored: %q", got)
	}
	add(t, v, places())

	docs := similar(t, v, "city England", 5)
	if len(docs) < 2 || docs[0].Score <= docs[1].Score {
		t.Fatalf("found %v, want one first", docs)
	}
	between := (docs[0].Score + docs[1].Score) / 2
	if got := similar(t, v, "city England", 5, vectorstores.WithScoreThreshold(between)); len(got) != 1 ||
		got[0].PageContent != docs[0].PageContent {
		t.Errorf("%d documents score at least %v: %v, want the first alone", len(got), between, got)
	}
	if got := similar(t, v, "city England", 5, vectorstores.WithScoreThreshold(docs[0].Score)); len(got) != 1 {
		t.Errorf("%d documents score at least %v, want the one that scores that", len(got), docs[0].Score)
	}
	for name, filter := range map[string]any{
		"store.Filter": store.All(store.Eq("kind", "city"), store.Between("area", 0, 4000)),
		"map":          map[string]any{"kind": "city", "area": 3251},
		"lists":        map[string][]any{"kind": {"city"}, "area": {3251, 2342}},
		"Qdrant's": map[string]any{
			"must":     []map[string]any{{"key": "area", "range": map[string]any{"lte": 4000, "gt": 2342}}},
			"should":   []any{map[string]any{"key": "kind", "match": map[string]any{"any": []string{"city", "nation"}}}},
			"must_not": map[string]any{"key": "kind", "match": map[string]any{"value": "country"}},
		},
	} {
		if got := contents(similar(t, v, "A city country nation", 20, vectorstores.WithFilters(filter))); !slices.Equal(got,
			[]string{"A city in Texas"}) {
			t.Errorf("filter by %s found %q, want the city in Texas", name, got)
		}
	}
	checkRefused(t, v)
	checkEmbedder(t, v)
}

// checkRefused: what cannot be honoured is an error that names the option.
func checkRefused(t *testing.T, v vectorstores.VectorStore) {
	known := func(context.Context, schema.Document) bool { return true }
	search := func(o vectorstores.Option) error {
		docs, err := v.SimilaritySearch(within(t), "England", 3, o)
		if docs != nil {
			t.Errorf("documents %v beside an error", docs)
		}
		return err
	}
	adds := func(o vectorstores.Option) error {
		_, err := v.AddDocuments(within(t), []schema.Document{{PageContent: "never stored"}}, o)
		return err
	}
	for _, r := range []struct {
		err  error
		want string
	}{
		{search(vectorstores.WithScoreThreshold(1.5)), "WithScoreThreshold: 1.5"},
		{search(vectorstores.WithScoreThreshold(-0.5)), "WithScoreThreshold: -0.5"},
		{search(vectorstores.WithNameSpace("elsewhere")), `WithNameSpace: "elsewhere"`},
		{search(vectorstores.WithDeduplicater(known)), "WithDeduplicater"},
		{search(vectorstores.WithFilters("area < 3")), "WithFilters"},
		{search(vectorstores.WithFilters(map[string]any{"area": map[string]any{"$lt": 3}})), "WithFilters"},
		{search(vectorstores.WithFilters(map[string]any{"must": []any{map[string]any{"geo_radius": 1}}})), "geo_radius"},
		{adds(vectorstores.WithNameSpace("elsewhere")), `WithNameSpace: "elsewhere"`},
		{adds(vectorstores.WithScoreThreshold(0.5)), "WithScoreThreshold"},
		{adds(vectorstores.WithFilters(store.Eq("a", "b"))), "WithFilters"},
	} {
		if !errors.Is(r.err, store.ErrBadOption) || !strings.Contains(r.err.Error(), r.want) {
			t.Errorf("error %v, want ErrBadOption with %q", r.err, r.want)
		}
	}
	if got := contents(similar(t, v, "never stored", 20)); slices.Contains(got, "never stored") {
		t.Error("a refused AddDocuments stored the document")
	}
}

// counted counts what it embeds.
type counted struct {
	Embedder
	texts *atomic.Int64
}

func (c counted) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	c.texts.Add(int64(len(texts)))
	return c.Embedder.EmbedDocuments(ctx, texts)
}

func (c counted) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	c.texts.Add(1)
	return c.Embedder.EmbedQuery(ctx, text)
}

// checkEmbedder: the embedder of a call is used for that call, or refused.
func checkEmbedder(t *testing.T, v vectorstores.VectorStore) {
	e := counted{texts: new(atomic.Int64)}
	_, err := v.AddDocuments(within(t), places(), vectorstores.WithEmbedder(e))
	if err != nil {
		if !errors.Is(err, store.ErrBadOption) || !strings.Contains(err.Error(), "WithEmbedder") {
			t.Errorf("WithEmbedder: %v, want ErrBadOption that names it", err)
		}
		if _, err := v.SimilaritySearch(within(t), "England", 3, vectorstores.WithEmbedder(e)); !errors.Is(err, store.ErrBadOption) {
			t.Errorf("SimilaritySearch takes WithEmbedder, AddDocuments does not: %v", err)
		}
		return
	}
	if n := int64(len(places())); e.texts.Load() != n {
		t.Errorf("the embedder got %d texts of %d documents", e.texts.Load(), n)
	}
	before := e.texts.Load()
	similar(t, v, "England", 3, vectorstores.WithEmbedder(e))
	similar(t, v, "England", 3)
	if n := e.texts.Load() - before; n != 1 {
		t.Errorf("the embedder got %d questions, want that of its call", n)
	}
}

// checkVectorStoreTenants: the name space is the tenant.
func checkVectorStoreTenants(t *testing.T, s Subject) {
	if s.Tenants == nil {
		t.Skip("the subject has no Tenants")
	}
	v := vectorStore(t, s.Tenants(t))
	for _, name := range []string{"acme", "ajax"} {
		add(t, v, []schema.Document{{PageContent: "The plan of " + name}}, vectorstores.WithNameSpace(name))
	}
	if got := contents(similar(t, v, "plan", 5, vectorstores.WithNameSpace("ajax"))); !slices.Equal(got, []string{"The plan of ajax"}) {
		t.Errorf("ajax found %q, want its plan", got)
	}
	_, searched := v.SimilaritySearch(within(t), "plan", 5)
	_, added := v.AddDocuments(within(t), places())
	for name, err := range map[string]error{"SimilaritySearch": searched, "AddDocuments": added} {
		if !errors.Is(err, store.ErrBadOption) || !strings.Contains(err.Error(), "WithNameSpace") {
			t.Errorf("%s without a name space: %v, want ErrBadOption that names the option", name, err)
		}
	}
}
