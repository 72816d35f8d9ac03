package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/retriever/store"
)

func TestQueryCheck(t *testing.T) {
	deep := store.Eq("a", "b")
	for range 20 {
		deep = store.Not(deep)
	}
	for name, test := range map[string]struct {
		q       store.Query
		tenants bool
		want    string // in the error; empty: none
	}{
		"good":           {store.Query{Text: "q", K: 1, Filter: store.Eq("a", "b")}, false, ""},
		"good tenant":    {store.Query{Text: "q", K: 1, Tenant: "t"}, true, ""},
		"no text":        {store.Query{Text: " ", K: 1}, false, `Query.Text = " "`},
		"k":              {store.Query{Text: "q", K: -2}, false, "Query.K = -2"},
		"no tenant":      {store.Query{Text: "q", K: 1}, true, "Query.Tenant is empty"},
		"tenant":         {store.Query{Text: "q", K: 1, Tenant: "t"}, false, `Query.Tenant = "t"`},
		"bad tenant":     {store.Query{Text: "q", K: 1, Tenant: "\xff"}, true, `Query.Tenant = "\xff"`},
		"key":            {store.Query{Text: "q", K: 1, Filter: store.Eq("", 1)}, false, `Filter.Key = ""`},
		"value":          {store.Query{Text: "q", K: 1, Filter: store.Eq("a", 0.5)}, false, "float64"},
		"large value":    {store.Query{Text: "q", K: 1, Filter: store.Eq("a", uint64(math.MaxUint64))}, false, "uint64"},
		"range":          {store.Query{Text: "q", K: 1, Filter: store.Between("a", 2, 1)}, false, "range 2 to 1"},
		"empty all":      {store.Query{Text: "q", K: 1, Filter: store.All()}, false, "without filters"},
		"inner":          {store.Query{Text: "q", K: 1, Filter: store.Not(store.In("a"))}, false, `no values for key "a"`},
		"unknown":        {store.Query{Text: "q", K: 1, Filter: store.Filter{Op: 99}}, false, "Filter.Op = 99"},
		"nested forever": {store.Query{Text: "q", K: 1, Filter: deep}, false, "16 deep"},
	} {
		err := test.q.Check(test.tenants)
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, store.ErrBadQuery) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

func TestMatches(t *testing.T) {
	metadata := map[string]any{
		"s": "x", "n": 3, "f": 0.5, "whole": 4.0, "b": true, "l": []any{"x", 2}, "m": map[string]any{"k": "v"}, "nil": nil, "a.b": "flat",
	}
	for name, test := range map[string]struct {
		f    store.Filter
		want bool
	}{
		"zero": {store.Filter{}, true}, "string": {store.Eq("s", "x"), true}, "other string": {store.Eq("s", "X"), false},
		"type": {store.Eq("n", "3"), false}, "int": {store.Eq("n", int8(3)), true}, "float as int": {store.Eq("whole", 4), true},
		"bool": {store.Eq("b", true), true}, "list": {store.Eq("l", 2), true}, "not in list": {store.Eq("l", 3), false},
		"nested": {store.Eq("m.k", "v"), true}, "through a string": {store.Eq("s.k", "v"), false}, "dot": {store.Eq("a.b", "flat"), false},
		"nil": {store.Eq("nil", "x"), false}, "missing": {store.Not(store.Eq("missing", "x")), true},
		"range": {store.Between("f", 0.5, 1), true}, "above": {store.Between("n", 4, math.Inf(1)), false},
		"range of string":      {store.Between("s", 0, 9), false},
		"all":                  {store.All(store.Eq("s", "x"), store.Eq("n", 4)), false},
		"any":                  {store.Any(store.Eq("s", "y"), store.Eq("n", 3)), true},
		"list equal to a list": {store.Filter{Op: store.OpIn, Key: "l", Values: []any{[]any{"x"}}}, false},
	} {
		if got := test.f.Matches(metadata); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestValidMetadata(t *testing.T) {
	type lang string
	var fromJSON map[string]any
	if err := json.Unmarshal([]byte(`{"whole": 12, "part": 1.5, "list": [1, "a", null], "map": {"k": true}}`), &fromJSON); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ in, want map[string]any }{
		"nil":  {nil, nil},
		"json": {fromJSON, map[string]any{"whole": int64(12), "part": 1.5, "list": []any{int64(1), "a", nil}, "map": map[string]any{"k": true}}},
		"types": {
			map[string]any{"a": lang("en"), "b": uint16(7), "c": []string{"x"}, "d": float32(0.5)},
			map[string]any{"a": "en", "b": int64(7), "c": []any{"x"}, "d": 0.5},
		},
		"utf-8": {map[string]any{"k\xff": "v\xff"}, map[string]any{"k\uFFFD": "v\uFFFD"}},
	} {
		got, err := store.ValidMetadata(test.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	endless := map[string]any{}
	endless["self"] = endless
	for name, in := range map[string]map[string]any{
		"type": {"key": struct{}{}}, "nan": {"key": []any{math.NaN()}}, "large": {"key": uint64(math.MaxUint64)}, "endless": {"key": endless},
	} {
		if _, err := store.ValidMetadata(in); !errors.Is(err, store.ErrBadDocument) || !strings.Contains(err.Error(), `"key"`) {
			t.Errorf("%s: error %v, want ErrBadDocument and the key", name, err)
		}
	}
}

func TestVersion(t *testing.T) {
	if got := store.Version("Valves hold water back."); !strings.HasPrefix(got, "bc05df25") || len(got) != 32 {
		t.Errorf("Version = %s, want bc05df25… of 32 digits: what is stored must not change", got)
	}
	if store.Version("a\xff") != store.Version("a\uFFFD") || store.Version("a") == store.Version("b") {
		t.Error("a version does not name the text that is stored")
	}
}

// found is a store that always finds the same.
type found []store.Hit

func (f found) Search(_ context.Context, q store.Query) ([]store.Hit, error) {
	if q.Text == "" {
		return nil, store.ErrBadQuery
	}
	return f[:q.K], nil
}

func TestRetriever(t *testing.T) {
	hits := found{
		{ID: "a", Text: "Alpha.", Score: 0.5, Version: "v1", Metadata: map[string]any{"id": "other", "page": int64(3)}},
		{ID: "b", Text: "Beta."},
	}
	docs, err := store.NewRetriever(hits, store.Query{K: 1}).GetRelevantDocuments(t.Context(), "question")
	if err != nil {
		t.Fatal(err)
	}
	want := []schema.Document{{
		PageContent: "Alpha.", Score: 0.5, Metadata: map[string]any{"id": "a", "version": "v1", "page": int64(3)},
	}}
	if diff := cmp.Diff(want, docs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if hits[0].Metadata["id"] != "other" {
		t.Error("the store's metadata was changed")
	}
	if _, err := store.NewRetriever(hits, store.Query{K: 1}).GetRelevantDocuments(t.Context(), ""); !errors.Is(err, store.ErrBadQuery) {
		t.Errorf("error %v, want that of the store", err)
	}
}

func TestModeString(t *testing.T) {
	for m, want := range map[store.Mode]string{
		store.Auto: "auto", store.Lexical: "lexical", store.Dense: "dense", store.Hybrid: "hybrid", 9: "Mode(9)", -1: "Mode(-1)",
	} {
		if got := m.String(); got != want {
			t.Errorf("Mode %d is %q, want %q", int(m), got, want)
		}
	}
}
