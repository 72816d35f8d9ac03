package elastic_test

import (
	"testing"

	"github.com/elastic/go-elasticsearch/v8/typedapi/types"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/internal/storetest"
	"github.com/ragpilot/ragpilot/retriever/elastic"
)

// TestClientsFilter: a query of the client restricts beside Options.Filter, and what was found can be added again in a
// layout that keeps metadata beside ID and version.
func TestClientsFilter(t *testing.T) {
	kind := func(value string) *types.Query {
		return &types.Query{Match: map[string]types.MatchQuery{"text": {Query: value}}}
	}
	docs := []schema.Document{
		{PageContent: "A city in Texas", Metadata: map[string]any{"kind": "city"}},
		{PageContent: "A country in Asia", Metadata: map[string]any{"kind": "country"}},
	}
	for name, test := range map[string]struct {
		always, now *types.Query
		want        int
	}{
		"nil": {nil, nil, 2}, "query's": {nil, kind("city"), 1}, "both": {kind("country"), kind("city"), 0}, "options'": {kind("country"), nil, 1},
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
	}
}
