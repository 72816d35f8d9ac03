//go:build stores

package elastic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/typedapi/core/search"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// The official client compiles for minutes, so that only the step "stores" sees it, which compiles this file.
var (
	_ elastic.Client = (*elasticsearch.Client)(nil)
	_ elastic.Client = (*elasticsearch.TypedClient)(nil)
	_ elastic.Client = (*elasticsearch.BaseClient)(nil)
)

// TestOfficialClients runs the suite of all stores with each of the official clients as Options.Client.
func TestOfficialClients(t *testing.T) {
	for name, make := range map[string]func(elasticsearch.Config) (elastic.Client, error){
		"Client":      func(c elasticsearch.Config) (elastic.Client, error) { return elasticsearch.NewClient(c) },
		"TypedClient": func(c elasticsearch.Config) (elastic.Client, error) { return elasticsearch.NewTypedClient(c) },
		"BaseClient":  func(c elasticsearch.Config) (elastic.Client, error) { return elasticsearch.NewBaseClient(c) },
	} {
		t.Run(name, func(t *testing.T) {
			conform(t, elastic.Options{Embedder: retrievertest.Embedder{}}, true, func(t testing.TB, o elastic.Options) elastic.Options {
				transport := &http.Transport{}
				t.Cleanup(transport.CloseIdleConnections)
				o.Client = testkit.Must(make(elasticsearch.Config{
					Addresses: o.Addresses, Username: o.Username, Password: o.Password, Transport: transport, DisableRetry: true,
				}))(t)
				o.Addresses, o.Username, o.Password = nil, "", ""
				return o
			})
		})
	}
}

func TestOfficialClientsFilter(t *testing.T) {
	testServersFilter(t, func(text string) *types.Query {
		return &types.Query{Match: map[string]types.MatchQuery{"text": {Query: text}}}
	})
}

// BenchmarkOverhead compares a search with the same request of the bare client, both against a fake server
// that takes no time. "bytes" is the client alone: it sends, and the answer's JSON is not read.
func BenchmarkOverhead(b *testing.B) {
	for _, k := range []int{5, 15, 50} {
		f := &fakeServer{status: http.StatusOK, body: hitsOf(k)}
		config := elasticsearch.Config{Transport: roundTripper{f}, DisableRetry: true, DisableMetaHeader: true}
		client := testkit.Must(elasticsearch.NewTypedClient(config))(b)
		x, err := elastic.Open(elastic.Options{Client: client, Index: "docs"})
		if err != nil {
			b.Fatal(err)
		}
		request := func() *search.Search {
			size := k + 8
			return client.Search().Index("docs").AllowPartialSearchResults(false).Request(&search.Request{
				Size: &size, TrackTotalHits: false, Source_: types.SourceFilter{Excludes: []string{"vector", "facets", "numbers"}},
				Query: &types.Query{Bool: &types.BoolQuery{Must: []types.Query{
					{Match: map[string]types.MatchQuery{"text": {Query: "which animal swims?"}}},
				}}},
			})
		}
		bytes := func() {
			res, err := request().Perform(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		bare := func() {
			if _, err := request().Do(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		ours := func() {
			if _, err := x.Search(context.Background(), store.Query{Text: "which animal swims?", K: k}); err != nil {
				b.Fatal(err)
			}
		}
		sent := func() (path string, body any) { // the client adds typed_keys, which names the types of aggregations
			if err := json.Unmarshal([]byte(f.sent), &body); err != nil {
				b.Fatal(err)
			}
			return f.last.URL.Path, body
		}
		bare()
		path, want := sent()
		ours()
		if got, body := sent(); got != path || cmp.Diff(want, body) != "" {
			b.Fatalf("the client sends %s %v, the index %s %v: not the same call", path, want, got, body)
		}
		b.Run(fmt.Sprintf("k=%d/bytes", k), func(b *testing.B) { testkit.Median(b, bytes) })
		testkit.Beside(b, fmt.Sprintf("k=%d", k), bare, ours)
	}
}
