package vectorstore

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/retriever/store"
)

type m = map[string]any

func TestFilter(t *testing.T) {
	inf := math.Inf(1)
	a, b := store.Eq("a", "x"), store.Eq("b", int64(2))
	for name, test := range map[string]struct {
		in   any
		want store.Filter
	}{
		"none":           {nil, store.Filter{}},
		"ours":           {a, a},
		"empty map":      {m{}, store.Filter{}},
		"map":            {m{"b": 2, "a": "x"}, store.All(a, b)},
		"map of strings": {map[string]string{"a": "x"}, store.All(a)},
		"list":           {m{"a": []string{"x", "y"}}, store.All(store.In("a", "x", "y"))},
		"key named must": {m{"must": "x"}, store.All(store.Eq("must", "x"))},
		"match":          {m{"must": []m{{"key": "a", "match": m{"value": "x"}}}}, store.All(a)},
		"should and must": {
			m{"should": []m{{"key": "b", "match": m{"value": 2}}}, "must": m{"key": "a", "match": m{"value": "x"}}},
			store.All(a, store.Any(b)),
		},
		"a large number": {m{"a": int64(1<<53 + 1)}, store.All(store.In("a", int64(1<<53+1)))},
		"must not":       {m{"must_not": []m{{"key": "a", "match": m{"value": "x"}}}}, store.All(store.Not(store.Any(a)))},
		"nested":         {m{"must": []m{{"should": []m{{"key": "a", "match": m{"value": "x"}}}}}}, store.All(store.All(store.Any(a)))},
		"empty clause":   {m{"must": []m{}}, store.Filter{}},
		"range": {
			m{"must": []m{{"key": "n", "range": m{"gte": 1, "lt": 3, "lte": nil}}}},
			store.All(store.Between("n", 1, math.Nextafter(3, -inf))),
		},
		"open range": {m{"must": []m{{"key": "n", "range": m{"gt": 1}}}}, store.All(store.Between("n", math.Nextafter(1, inf), inf))},
	} {
		got, err := filter(test.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestFilterNamesWhatItDoesNotKnow(t *testing.T) {
	for want, in := range map[string]any{
		"a string":           "a = 1",
		"struct":             struct{ Must []m }{},
		"chan":               m{"a": make(chan int)},
		`key "a" is a map`:   m{"a": m{"$gt": 1}},
		`key "b" is a float`: m{"b": 0.5},
		`values for key "a"`: m{"a": []string{}},
		"match map[except:":  m{"must": []m{{"key": "a", "match": m{"except": []string{"x"}}}}}, // Qdrant's leaves out documents without the key
		"must[1] is a int":   m{"must": []any{m{"key": "a", "match": m{"value": "x"}}, 3}},
		"is_empty":           m{"must": []m{{"is_empty": m{"key": "a"}}}},
		`"text"`:             m{"must": []m{{"key": "a", "text": "y"}}},
		"nothing else":       m{"must": []m{{"key": "a", "match": m{"value": "x"}, "range": m{"gte": 1}}}},
		"match map[text:x]":  m{"must": []m{{"key": "a", "match": m{"text": "x"}}}},
		"range gte = x":      m{"must": []m{{"key": "n", "range": m{"gte": "x"}}}},
		`range "from"`:       m{"must": []m{{"key": "n", "range": m{"from": 1}}}},
		"range 3 to 1":       m{"must": []m{{"key": "n", "range": m{"gte": 3, "lte": 1}}}},
		`key "n" without`:    m{"must": []m{{"key": "n"}}},
		"min_should":         m{"must": []m{{"min_should": m{"conditions": []m{}}}}},
	} {
		if _, err := filter(in); !errors.Is(err, store.ErrBadOption) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "WithFilters") {
			t.Errorf("filter %v: error %v, want ErrBadOption with %q", in, err, want)
		}
	}
}

// TestMadeIDs: an ID says which text and metadata it is of, whatever types the metadata's numbers came in.
func TestMadeIDs(t *testing.T) {
	id := func(text string, metadata m) string {
		got, err := made(schema.Document{PageContent: text, Metadata: metadata})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := id("A page.", m{"page": 3})
	if len(want) != 16 || id("A page.", m{"page": 3.0}) != want || id("a", nil) != id("a", m{}) {
		t.Errorf("ID %q and %q of the same document", want, id("A page.", m{"page": 3.0}))
	}
	for _, other := range []string{id("A page.", m{"page": 4}), id("A page.", nil), id(`A page.{"page":3}`, nil), id("Page.", m{"page": 3})} {
		if other == want {
			t.Errorf("two documents have the ID %q", want)
		}
	}
	if _, err := made(schema.Document{Metadata: m{"c": make(chan int)}}); !errors.Is(err, store.ErrBadDocument) {
		t.Errorf("error %v, want ErrBadDocument", err)
	}
}
