package retrievertest

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// numbers compares metadata whatever type its numbers came back in.
var numbers = cmp.Transformer("number", func(v any) any {
	switch n := v.(type) {
	case int:
		return float64(n)
	case int64:
		return float64(n)
	}
	return v
})

func equalMetadata(want, got map[string]any) string {
	return cmp.Diff(want, got, cmp.FilterValues(func(a, b any) bool { return isInt(a) || isInt(b) }, numbers))
}

func isInt(v any) bool {
	switch v.(type) {
	case int, int64:
		return true
	}
	return false
}

// checkMetadata: what was stored comes back, and belongs to the caller.
func checkMetadata(t *testing.T, s Subject) {
	want := map[string]any{
		"source": "guide.md", "page": 12, "negative": -3, "ratio": 0.25, "draft": true, "empty": "",
		"tags": []any{"a", "b"}, "author": map[string]any{"name": "Ada", "born": 1815},
		"id": "not the ID", "text": "not the text", "version": "not the version", "ключ": "значение",
	}
	given := maps.Clone(want)
	x := s.filled(t, store.Document{ID: "d", Text: "A page with metadata.", Metadata: given}, doc("e", "A page without."))
	given["source"] = "changed"
	for range 2 {
		h := hit(t, ask(t, x, "page with metadata", 5), "d")
		if diff := equalMetadata(want, h.Metadata); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
		clear(h.Metadata)
	}
	if h := hit(t, ask(t, x, "page without", 5), "e"); len(h.Metadata) != 0 {
		t.Errorf("metadata %v of a document without", h.Metadata)
	}
}

// books differ in their metadata alone.
func books() []store.Document {
	const text = "A book of the library."
	book := func(id string, metadata map[string]any) store.Document {
		return store.Document{ID: id, Text: text, Metadata: metadata}
	}
	author := func(name string) map[string]any { return map[string]any{"name": name} }
	return []store.Document{
		book("b1", map[string]any{
			"lang": "en", "year": 1990, "price": 9.5, "lent": true, "tags": []any{"sea", "ships"},
			"author": author("Ada"),
		}),
		book("b2", map[string]any{"lang": "en", "year": 2000, "price": 12.0, "lent": false, "tags": []any{"sea"}, "author": author("Ben")}),
		book("b3", map[string]any{"lang": "de", "year": 2010, "price": 20.25, "lent": true, "tags": []any{"land"}, "author": author("Ada")}),
		book("b4", map[string]any{"lang": "EN", "year": 2020, "lent": false}),
		book("b5", map[string]any{"lang": `quoted "en"`, "year": -44}),
		book("b6", map[string]any{"lang": "日本語", "tags": []any{}}),
		book("b7", nil),
	}
}

// checkFilters compares with [store.Filter.Matches].
func checkFilters(t *testing.T, s Subject) {
	x := s.filled(t, books()...)
	inf := math.Inf(1)
	for name, f := range map[string]store.Filter{
		"none":              {},
		"string":            store.Eq("lang", "en"),
		"quotes":            store.Eq("lang", `quoted "en"`),
		"unicode":           store.Eq("lang", "日本語"),
		"no such value":     store.Eq("lang", "fr"),
		"no such key":       store.Eq("color", "red"),
		"one of":            store.In("lang", "de", "EN", "fr"),
		"whole number":      store.Eq("year", 2010),
		"negative":          store.Eq("year", -44),
		"one of numbers":    store.In("year", 1990, int64(2020)),
		"true":              store.Eq("lent", true),
		"false":             store.Eq("lent", false),
		"element of a list": store.Eq("tags", "sea"),
		"nested":            store.Eq("author.name", "Ada"),
		"range":             store.Between("year", 1995, 2010),
		"from":              store.Between("year", 2000, inf),
		"up to":             store.Between("year", -inf, 1990),
		"fractions":         store.Between("price", 9.5, 12),
		"not":               store.Not(store.Eq("lang", "en")),
		"not a range":       store.Not(store.Between("year", 0, 2005)),
		"all":               store.All(store.Eq("lang", "en"), store.Eq("lent", true)),
		"any":               store.Any(store.Eq("lang", "de"), store.Between("year", 2015, inf)),
		"deep": store.All(
			store.Not(store.Any(store.Eq("lang", "de"), store.Eq("year", 1990))),
			store.Any(store.Eq("tags", "sea"), store.Not(store.Eq("lent", false)))),
		"all of none": store.All(store.Filter{}, store.Eq("lang", "en")),
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, d := range books() {
				if f.Matches(d.Metadata) {
					want = append(want, d.ID)
				}
			}
			got := ids(find(t, x, store.Query{Text: "book", K: 20, Filter: f}))
			if s.FusesRanks {
				slices.Sort(got)
			}
			if !slices.Equal(want, got) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}
