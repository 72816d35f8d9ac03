package elastic_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

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

func (f *fakeServer) Perform(r *http.Request) (*http.Response, error) {
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
