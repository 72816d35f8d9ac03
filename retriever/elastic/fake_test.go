package elastic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// server returns where the examples' Elasticsearch is, and the name of an alias that is not there: the real server at
// ELASTICSEARCH_URL, or else a fake of one that listens on this machine. remove takes both away.
func server() (address, alias string, remove func()) {
	alias = fmt.Sprintf("ragpilot-example-%d-%d", os.Getpid(), indexes.Add(1))
	if address = os.Getenv("ELASTICSEARCH_URL"); address != "" {
		return address, alias, func() {
			index, err := elastic.Open(elastic.Options{Addresses: []string{address}, Index: alias})
			check(err)
			check(index.Drop(context.Background()))
			check(index.Close())
		}
	}
	fake := httptest.NewServer(newFakeStore())
	return fake.URL, alias, fake.Close
}

// newFakeStore is a fake of an Elasticsearch server with one index: it answers what the examples ask. A document scores the
// number of the question's words that it has.
func newFakeStore() http.Handler {
	f := &fakeStore{sources: map[string]json.RawMessage{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_alias/{alias}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, `{"error":"alias missing","status":404}`)
	})
	mux.HandleFunc("PUT /{index}", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, `{"acknowledged":true}`) })
	mux.HandleFunc("POST /{alias}/_refresh", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, `{}`) })
	mux.HandleFunc("POST /{alias}/_bulk", f.bulk)
	mux.HandleFunc("PUT /{alias}/_bulk", f.bulk)
	mux.HandleFunc("POST /{alias}/_search", f.search)
	return mux
}

type fakeStore struct {
	mu      sync.Mutex
	sources map[string]json.RawMessage // guarded by mu
}

// bulk stores documents; it knows "index" alone.
func (f *fakeStore) bulk(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var items []string
	for dec := json.NewDecoder(r.Body); dec.More(); {
		var op map[string]struct {
			ID string `json:"_id"`
		}
		var source json.RawMessage
		if dec.Decode(&op) != nil || dec.Decode(&source) != nil {
			answer(w, http.StatusBadRequest, `{"error":{"type":"illegal_argument_exception"},"status":400}`)
			return
		}
		f.sources[op["index"].ID] = source
		items = append(items, `{"index":{"status":201}}`)
	}
	answer(w, http.StatusOK, `{"errors":false,"items":[`+strings.Join(items, ",")+`]}`)
}

func (f *fakeStore) search(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var q struct {
		Size  int
		Query struct {
			Bool struct {
				Must []struct {
					Match map[string]struct{ Query string }
				}
				Filter []struct {
					Term map[string]struct{ Value string }
				}
			}
		}
	}
	if json.NewDecoder(r.Body).Decode(&q) != nil || len(q.Query.Bool.Must) != 1 {
		answer(w, http.StatusBadRequest, `{"error":{"type":"parsing_exception"},"status":400}`)
		return
	}
	var hits []string
	for id, source := range f.sources {
		score := overlap(q.Query.Bool.Must[0].Match["text"].Query, field(source, "text"))
		for _, filter := range q.Query.Bool.Filter {
			for key, want := range filter.Term {
				if !bytes.Contains(source, []byte(fmt.Sprintf("%q:[%q]", strings.TrimPrefix(key, "facets."), want.Value))) {
					score = 0
				}
			}
		}
		if score > 0 {
			hits = append(hits, fmt.Sprintf(`{"_id":%q,"_score":%d,"_source":%s}`, id, score, source))
		}
	}
	found := strings.Join(hits[:min(q.Size, len(hits))], ",")
	answer(w, http.StatusOK, `{"timed_out":false,"_shards":{"total":1,"failed":0},"hits":{"hits":[`+found+`]}}`)
}

// overlap counts the words of a that b has.
func overlap(a, b string) (n int) {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r < 'a' || r > 'z' })
	}
	for _, w := range words(a) {
		if slices.Contains(words(b), w) {
			n++
		}
	}
	return n
}

func field(source json.RawMessage, name string) (text string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(source, &fields) == nil {
		_ = json.Unmarshal(fields[name], &text)
	}
	return text
}

// handbook are the documents that the examples search.
func handbook() []store.Document {
	return []store.Document{
		{ID: "pumps.md#0", Text: "Pumps move water.", Metadata: map[string]any{"lang": "en"}},
		{ID: "valves.md#0", Text: "Valves hold water back.", Metadata: map[string]any{"lang": "en"}},
		{ID: "ventile.md#0", Text: "Ventile halten Wasser: water, valves.", Metadata: map[string]any{"lang": "de"}},
	}
}

// check stands for what a program does with an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
