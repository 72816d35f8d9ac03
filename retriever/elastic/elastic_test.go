package elastic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

func TestOptionsNameFieldAndValue(t *testing.T) {
	for want, o := range map[string]elastic.Options{
		`Options.Index = ""`:                      {},
		`Options.Index = "a,b"`:                   {Index: "a,b"},
		"Options.Client is set":                   {Index: "a", Client: &fakeServer{}, APIKey: "k"},
		"Options.APIKey and Options.Username":     {Index: "a", Username: "u", APIKey: "k"},
		"Options.Mode = Mode(9)":                  {Index: "a", Mode: 9},
		"Options.Embedder is nil":                 {Index: "a", Mode: store.Hybrid},
		"Options.Candidates = -1":                 {Index: "a", Candidates: -1},
		"Options.Candidates = 20000":              {Index: "a", Candidates: 20_000},
		"Options.Passages.Count = -1":             {Index: "a", Passages: elastic.Passages{Count: -1}},
		`Options.Layout.Text = "a.b"`:             {Index: "a", Layout: elastic.Layout{Text: "a.b"}},
		`Options.Layout.Text = "id" is Layout.ID`: {Index: "a", Layout: elastic.Layout{Text: "id"}},
		`Options.Addresses = ["\x7f"]`:            {Index: "a", Addresses: []string{"\x7f"}},
		"Options.Filter is a string that encodes to \"lang\", want a JSON object": {Index: "a", Filter: "lang"},
		"Options.Filter is a []string that encodes to []":                         {Index: "a", Filter: []string{}},
		"Options.Filter is a chan int that does not encode to JSON":               {Index: "a", Filter: make(chan int)},
		"Options.Filter is a json.RawMessage that does not encode to JSON":        {Index: "a", Filter: json.RawMessage(`{"a":`)},
	} {
		if _, err := elastic.Open(o); err == nil || !strings.HasPrefix(err.Error(), "elastic: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("err = %v, want it to name %s", err, want)
		}
	}
}

// TestErrorsHaveKinds: answers of servers and proxies as they are worded.
func TestErrorsHaveKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"no index": {404, `{"error":{"root_cause":[{"type":"index_not_found_exception","reason":"no such index [docs]"}],` +
			`"type":"index_not_found_exception","reason":"no such index [docs]"},"status":404}`, store.ErrNoIndex},
		"no rights":   {403, `{"error":{"type":"security_exception","reason":"action is unauthorized"},"status":403}`, store.ErrUnauthorized},
		"proxy":       {502, `<html>`, store.ErrUnavailable},
		"proxy login": {401, `login first`, store.ErrUnauthorized},
		"bad query": {400, `{"error":{"type":"search_phase_execution_exception","reason":"all shards failed",` +
			`"failed_shards":[{"reason":{"type":"query_shard_exception","reason":"failed to create query"}}]},"status":400}`, store.ErrBadQuery},
		"dimension": {400, `{"error":{"type":"x","reason":"all shards failed","caused_by":{"type":"illegal_argument_exception",` +
			`"reason":"the query vector has a different dimension [3] than the index vectors [4]"}},"status":400}`, store.ErrDimension},
		"half answer":  {200, `{"hits":{"hits":[`, store.ErrUnavailable},
		"half a table": {200, `{"timed_out":false,"_shards":{"total":2,"failed":1},"hits":{"hits":[]}}`, store.ErrUnavailable},
		"no text":      {200, `{"_shards":{"total":1,"failed":0},"hits":{"hits":[{"_id":"a","_source":{}}]}}`, store.ErrBadDocument},
		"text is null": {200, `{"_shards":{"total":1,"failed":0},"hits":{"hits":[{"_id":"a","_source":{"text":null}}]}}`, store.ErrBadDocument},
		"text is no string": {
			200, `{"_shards":{"total":1,"failed":0},"hits":{"hits":[{"_id":"a","_source":{"text":7}}]}}`,
			store.ErrBadDocument,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeServer{status: tc.status, body: tc.body}
			x := open(t, elastic.Options{Client: f, Index: "docs", Attempts: 1})
			hits, err := x.Search(t.Context(), otter)
			if !errors.Is(err, tc.want) || hits != nil || !strings.HasPrefix(err.Error(), `elastic: search "docs": `) {
				t.Errorf("hits %v, error %v, want %v alone", hits, err, tc.want)
			}
		})
	}
	t.Run("not Elasticsearch", func(t *testing.T) {
		f := &fakeServer{status: 200, body: hitsOf(1)}
		x := open(t, elastic.Options{Client: anonymous{f}, Index: "docs", Attempts: 1})
		if _, err := x.Search(t.Context(), otter); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "not Elasticsearch") {
			t.Errorf("an answer without the product's name: %v, want ErrUnavailable that says so", err)
		}
	})
}

// TestNothingIsDropped: an alias can lead to several indexes that know one ID, and a field for IDs can be empty. Each text
// that was found is a hit with an ID, and a document that is found twice is one.
func TestNothingIsDropped(t *testing.T) {
	f := &fakeServer{status: 200, body: `{"_shards":{"total":2,"failed":0},"hits":{"hits":[
		{"_id":"1","_index":"old","_score":3,"_source":{"slug":"otter","text":"The otter swims."}},
		{"_id":"2","_index":"new","_score":2,"_source":{"slug":"otter","text":"The otter dives."}},
		{"_id":"3","_index":"new","_score":1,"_source":{"slug":"otter","text":"The otter swims."}},
		{"_id":"4","_index":"new","_score":1,"_source":{"slug":"","text":"Otters sleep."}},
		{"_id":"5","_index":"new","_score":1,"_source":{"slug":null,"text":"Otters eat."}}]}}`}
	x := open(t, elastic.Options{
		Client: f, Index: "docs", Layout: elastic.Layout{ID: "slug"}, Embedder: retrievertest.Embedder{Size: 2},
	})
	hits, err := x.Search(t.Context(), store.Query{Text: "otter", K: 9})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range hits {
		got = append(got, h.ID+": "+h.Text)
	}
	want := []string{"otter: The otter swims.", "otter: The otter dives.", "4: Otters sleep.", "5: Otters eat."}
	if !slices.Equal(got, want) {
		t.Errorf("hits %q, want %q", got, want)
	}
}

// anonymous is a fake server that does not say that it is Elasticsearch.
type anonymous struct{ *fakeServer }

func (a anonymous) Perform(r *http.Request) (*http.Response, error) {
	res, err := a.fakeServer.Perform(r)
	if err == nil {
		res.Header.Del("X-Elastic-Product")
	}
	return res, err
}

// TestTopLevelKeysAreTaken: what the library stores itself does not take the place of metadata.
func TestTopLevelKeysAreTaken(t *testing.T) {
	for _, key := range []string{"id", "text", "version", "vector", "facets", "numbers", "owner"} {
		x := open(t, elastic.Options{
			Client: &fakeServer{status: 200, body: `{}`}, Index: "docs",
			Layout: elastic.Layout{Metadata: elastic.TopLevel, Tenant: "owner"}, Embedder: retrievertest.Embedder{Size: 2},
		})
		err := x.Upsert(t.Context(), []store.Document{{ID: "a", Tenant: "t", Text: "A page.", Metadata: map[string]any{key: "x"}}})
		if !errors.Is(err, store.ErrBadDocument) || !strings.Contains(err.Error(), fmt.Sprintf("metadata %q", key)) {
			t.Errorf("error %v, want ErrBadDocument and the key %q", err, key)
		}
	}
}

// aliasServer is a fake of what Rebuild asks of a server. The answer to the swap of the alias is lost.
type aliasServer struct {
	t      *testing.T
	swaps  bool   // the alias is swapped all the same
	silent bool   // afterwards it is unknown where the alias leads to
	alias  string // the index that it leads to
	gone   []string
}

func (s *aliasServer) Perform(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	body := `{"acknowledged":true}`
	switch {
	case r.URL.Path == "/_aliases":
		if s.swaps {
			s.alias = "docs-000002"
		}
		return nil, errors.New("connection reset")
	case strings.HasPrefix(r.URL.Path, "/_alias/docs"):
		if s.silent && s.alias == "docs-000002" {
			return nil, errors.New("connection refused")
		}
		body = fmt.Sprintf(`{%q:{"aliases":{"docs":{}}}}`, s.alias)
	case r.Method == http.MethodGet:
		body = `{"docs-000001":{}}`
	case r.Method == http.MethodDelete:
		s.gone = append(s.gone, strings.TrimPrefix(r.URL.Path, "/"))
	}
	header := http.Header{"X-Elastic-Product": {"Elasticsearch"}, "Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestRebuildWithoutAnAnswer: the index that the alias leads to is never removed.
func TestRebuildWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		swaps, silent bool
		fails         bool
		gone          []string
	}{
		"done":      {true, false, false, []string{"docs-000001"}},
		"not done":  {false, false, true, []string{"docs-000002"}},
		"not known": {true, true, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &aliasServer{t: t, swaps: c.swaps, silent: c.silent, alias: "docs-000001"}
			x := open(t, elastic.Options{Client: s, Index: "docs"})
			err := x.Rebuild(t.Context(), elastic.Schema{}, func(context.Context, *elastic.Index) error { return nil })
			if (err != nil) != c.fails || !slices.Equal(s.gone, c.gone) {
				t.Errorf("error %v, removed %q, want %q", err, s.gone, c.gone)
			}
		})
	}
}

// TestRequest shows what a search sends.
func TestRequest(t *testing.T) {
	f := &fakeServer{status: 200, body: hitsOf(3)}
	x := open(t, elastic.Options{
		Client: f, Index: "docs", Layout: elastic.Layout{Tenant: "owner"}, Embedder: retrievertest.Embedder{Size: 2}, Mode: store.Dense,
		Passages: elastic.Passages{Count: 2}, Filter: json.RawMessage(`{"exists": {"field": "x"}}`),
	})
	q := store.Query{Text: "an \xff otter", K: 3, Tenant: "acme", Filter: store.All(
		store.In("lang", "en", int64(3), true), store.Not(store.Between("a b.c", 1, math.Inf(1))),
		store.Any(store.Eq("k", strings.Repeat("x", 2000))))}
	if _, err := x.Search(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"owner":{"value":"acme"}`, `"facets.lang":["s:en","n:3","b:true"]`, `"numbers.a_20b_2ec":{"gte":1}`, `"facets.k":{"value":"h:`,
		`"exists":{"field":"x"}`, `"k":11`, `"num_candidates":100`, `"size":11`, `"excludes":["vector","facets","numbers"]`,
		`"number_of_fragments":2`, `"query":"an ` + "\uFFFD" + ` otter"`, `"track_total_hits":false`,
	} {
		if !strings.Contains(f.sent, want) {
			t.Errorf("the request lacks %s:\n%s", want, f.sent)
		}
	}
	if got := f.last.URL.Query().Get("allow_partial_search_results"); got != "false" {
		t.Errorf("allow_partial_search_results = %q", got)
	}
	if strings.Count(f.sent, "x") > 100 {
		t.Error("a long value is sent in full")
	}
}

// TestSpans: what was done, to what, and of an error its kind alone.
func TestSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	f := &fakeServer{status: 404, body: `{"error":{"type":"index_not_found_exception","reason":"no such index [docs]"}}`}
	x := open(t, elastic.Options{Client: f, Index: "docs", Tracer: provider})
	if _, err := x.Search(t.Context(), store.Query{Text: "a secret question", K: 1}); err == nil ||
		!strings.Contains(err.Error(), "Create makes it") {
		t.Fatal(err)
	}
	got := spans.Ended()
	if len(got) != 1 || got[0].Name() != "search docs" || got[0].Status().Description != "" {
		t.Fatalf("spans %v, want one", got)
	}
	attributes := map[string]string{}
	for _, a := range got[0].Attributes() {
		attributes[string(a.Key)] = a.Value.String()
		if strings.Contains(a.Value.String(), "secret") {
			t.Errorf("%s holds the question", a.Key)
		}
	}
	for key, want := range map[string]string{
		"db.system.name": "elasticsearch", "db.operation.name": "search", "db.collection.name": "docs",
		"error.type": "no_index",
	} {
		if attributes[key] != want {
			t.Errorf("%s = %q, want %q", key, attributes[key], want)
		}
	}
}

// TestAnalyzer: texts and questions become words as Schema.Analyzer says.
func TestAnalyzer(t *testing.T) {
	url := storetest.Elasticsearch(t)
	for _, c := range []struct {
		analyzer      string
		settings      map[string]any
		finds, misses string // questions about "The otters were swimming."
	}{
		{"ours", map[string]any{"analysis": map[string]any{"analyzer": map[string]any{"ours": map[string]any{
			"type": "standard", "stopwords": []string{"the", "were"},
		}}}}, "otters", "the"},
		{"english", nil, "swim", "the"}, // the stem of a word is found, a stop word is not
	} {
		t.Run(c.analyzer, func(t *testing.T) {
			opts := elastic.Options{Addresses: []string{url}, Index: fmt.Sprintf("ragpilot-test-analyzer-%d", time.Now().UnixNano())}
			x := open(t, opts)
			err := x.Create(t.Context(), elastic.Schema{Analyzer: c.analyzer, Settings: c.settings})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = open(t, opts).Drop(context.Background()) })
			if err := x.Upsert(t.Context(), []store.Document{{ID: "a", Text: "The otters were swimming."}}); err != nil {
				t.Fatal(err)
			}
			for question, want := range map[string]int{c.finds: 1, c.misses: 0} {
				if hits, err := x.Search(t.Context(), store.Query{Text: question, K: 1}); err != nil || len(hits) != want {
					t.Errorf("%q finds %v, %v; want %d", question, hits, err, want)
				}
			}
		})
	}
}
