package elastic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/typedapi/core/search"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// fakeServer answers every request with the same body, in no time. Its index has a field of vectors.
type fakeServer struct {
	status int
	body   string

	mu   sync.Mutex    // a hybrid search sends two requests at a time
	last *http.Request // guarded by mu while a search runs; the last request and its body
	sent string        // guarded by mu while a search runs
}

func (f *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	f.last, f.sent = r, string(sent)
	f.mu.Unlock()
	body := f.body
	if strings.HasSuffix(r.URL.Path, "/_field_caps") {
		body = `{"indices":["docs"],"fields":{"vector":{"dense_vector":{"searchable":true}}}}`
	}
	header := http.Header{"X-Elastic-Product": {"Elasticsearch"}, "Content-Type": {"application/json"}}
	return &http.Response{StatusCode: f.status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (f *fakeServer) client(t testing.TB) *elasticsearch.TypedClient {
	t.Helper()
	return testkit.Must(elasticsearch.NewTypedClient(elasticsearch.Config{Transport: f, DisableRetry: true, DisableMetaHeader: true}))(t)
}

// hitsOf is a server's answer with n documents of about 800 bytes.
func hitsOf(n int) string {
	var hits []string
	text := strings.Repeat("The otter swims in rivers. ", 30)
	for i := range n {
		hits = append(hits, fmt.Sprintf(`{"_index":"docs-000001","_id":"guide.md#%d","_score":%d.25,"_source":{"id":"guide.md#%d",`+
			`"text":%q,"version":"0123456789abcdef0123456789abcdef","metadata":{"source":"guide.md","page":%d}}}`,
			i, 100-i, i, text, i))
	}
	return `{"took":3,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"max_score":100.25,"hits":[` +
		strings.Join(hits, ",") + `]}}`
}

// BenchmarkOverhead compares a search with the same request of the bare client, both against a fake server
// that takes no time. "bytes" is the client alone: it sends, and nobody reads the answer's JSON.
func BenchmarkOverhead(b *testing.B) {
	for _, k := range []int{5, 15, 50} {
		f := &fakeServer{status: http.StatusOK, body: hitsOf(k)}
		client := f.client(b)
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
		bare()
		want, path := f.sent, f.last.URL.Path // the client adds typed_keys, which names the types of aggregations
		if ours(); f.sent != want || f.last.URL.Path != path {
			b.Fatalf("the client sends %s %s, the index %s %s: not the same call", path, want, f.last.URL.Path, f.sent)
		}
		b.Run(fmt.Sprintf("k=%d/bytes", k), func(b *testing.B) { testkit.Median(b, bytes) })
		testkit.Beside(b, fmt.Sprintf("k=%d", k), bare, ours)
	}
}

func BenchmarkRealSearch(b *testing.B) {
	x := create(b, elastic.Options{Addresses: []string{storetest.Elasticsearch(b)}})
	var docs []store.Document
	for i := range 1000 {
		docs = append(docs, store.Document{ID: fmt.Sprint(i), Text: fmt.Sprintf("Entry number%d of the register of otter%d.", i, i%7)})
	}
	if err := x.Upsert(b.Context(), docs); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.Search(b.Context(), store.Query{Text: "register otter3", K: 15}); err != nil {
			b.Fatal(err)
		}
	}
}
