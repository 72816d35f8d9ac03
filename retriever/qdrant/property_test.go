package qdrant_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// metadata and filters use few keys and values, so that they meet.
var (
	someKey    = rapid.SampledFrom([]string{"a", "b", "m.a", "m.ü", "m.a.b"})
	someWord   = rapid.SampledFrom([]string{"", "x", "y", `"`})
	someNumber = rapid.IntRange(-2, 2)
)

func someValue(depth int) *rapid.Generator[any] {
	choices := []*rapid.Generator[any]{
		rapid.Map(someWord, func(s string) any { return s }),
		rapid.Map(someNumber, func(n int) any { return n }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](0.5), rapid.Just[any](nil),
	}
	if depth > 0 {
		choices = append(choices,
			rapid.Map(rapid.SliceOfN(someValue(0), 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "ü"}), rapid.Deferred(func() *rapid.Generator[any] {
				return someValue(depth - 1)
			}), 0, 2), func(m map[string]any) any { return m }))
	}
	return rapid.OneOf(choices...)
}

func someFilter(depth int) *rapid.Generator[store.Filter] {
	return rapid.Custom(func(t *rapid.T) store.Filter {
		kinds := 4
		if depth > 0 {
			kinds = 7
		}
		inner := func() []store.Filter { return rapid.SliceOfN(someFilter(depth-1), 1, 3).Draw(t, "of") }
		key := someKey.Draw(t, "key")
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 1:
			return store.In(key, rapid.SliceOfN(rapid.OneOf(
				rapid.Map(someWord, func(s string) any { return s }), rapid.Map(someNumber, func(n int) any { return n })), 1, 3).Draw(t, "values")...)
		case 2:
			return store.Eq(key, rapid.Bool().Draw(t, "bool"))
		case 3:
			low := someNumber.Draw(t, "low")
			return store.Between(key, float64(low), float64(low+rapid.IntRange(0, 2).Draw(t, "more")))
		case 4:
			return store.All(inner()...)
		case 5:
			return store.Any(inner()...)
		case 6:
			return store.Not(inner()[0])
		}
		return store.Filter{}
	})
}

// TestFiltersMeanTheSame: what the server finds with a filter is what [store.Filter.Matches] says.
func TestFiltersMeanTheSame(t *testing.T) {
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			opts := with(dense, server(t))
			x := create(t, opts)
			rapid.Check(t, func(r *rapid.T) {
				var docs []store.Document
				var want []string
				f := someFilter(3).Draw(r, "filter")
				for i := range 6 {
					d := store.Document{ID: fmt.Sprint(i), Text: "A page.", Metadata: map[string]any{}}
					for _, key := range []string{"a", "b", "m"} {
						if rapid.Bool().Draw(r, "has "+key) {
							d.Metadata[key] = someValue(2).Draw(r, key)
						}
					}
					docs = append(docs, d)
					if f.Matches(d.Metadata) {
						want = append(want, d.ID)
					}
				}
				if err := x.Upsert(t.Context(), docs); err != nil {
					r.Fatal(err)
				}
				hits, err := x.Search(t.Context(), store.Query{Text: "page", K: 10, Filter: f})
				if err != nil {
					r.Fatal(err)
				}
				var got []string
				for _, h := range hits {
					got = append(got, h.ID)
				}
				if !slices.Equal(want, got) {
					r.Fatalf("filter %+v: found %q, want %q", f, got, want)
				}
			})
		})
	}
}

// FuzzWords: any text gives a vector that servers accept.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"", "The otter, the river.", "日本語のテキスト and words", "a\xffb", "e\u0301"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		vectors, err := qdrant.Words{}.SparseDocuments(t.Context(), []string{text})
		if err != nil {
			t.Fatal(err)
		}
		query, err := qdrant.Words{}.SparseQuery(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		v := vectors[0]
		if !slices.Equal(v.Indices, query.Indices) || len(v.Values) != len(v.Indices) {
			t.Fatalf("document %v, query %v", v, query)
		}
		for i, value := range v.Values {
			if value <= 0 || value > 2.2 || query.Values[i] != 1 || i > 0 && v.Indices[i] <= v.Indices[i-1] {
				t.Fatalf("vector %v", v)
			}
		}
	})
}
