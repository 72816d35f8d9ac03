package qdrant_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestRequests shows what is sent for each way to search.
func TestRequests(t *testing.T) {
	tiny := retrievertest.Embedder{Size: 3}
	for name, test := range map[string]struct {
		opts qdrant.Options
		q    store.Query
	}{
		"dense":  {qdrant.Options{Embedder: tiny}, store.Query{K: 5}},
		"named":  {qdrant.Options{Embedder: tiny, Vector: "meaning"}, store.Query{K: 5}},
		"sparse": {qdrant.Options{Sparse: qdrant.Words{}}, store.Query{K: 5}},
		"hybrid": {
			qdrant.Options{Embedder: tiny, Sparse: qdrant.Words{}, Vector: "meaning", Layout: qdrant.Layout{Tenant: "tenant"}},
			store.Query{K: 5, Tenant: "acme", Filter: store.Eq("lang", "en")},
		},
		"hybrid-dbsf": {
			qdrant.Options{Embedder: tiny, Sparse: qdrant.Words{}, Vector: "meaning", Fusion: qdrant.DBSF, Candidates: 20},
			store.Query{K: 50},
		},
		"one-of-two": {qdrant.Options{Embedder: tiny, Sparse: qdrant.Words{}, Vector: "meaning", Mode: store.Lexical}, store.Query{K: 5}},
		"filters": {
			qdrant.Options{Embedder: tiny, Filter: &api.Filter{MustNot: []*api.Condition{api.NewIsEmpty("text")}}},
			store.Query{K: 5, Filter: store.All(
				store.In("lang", "en", 3, true), store.Not(store.Eq("a key.names", "Ada")),
				store.Any(store.Between("year", 1990, math.Inf(1)), store.Eq("draft", false)),
				store.Filter{}, store.Not(store.Filter{}))},
		},
		"top-level": {
			qdrant.Options{Embedder: tiny, Layout: qdrant.Layout{Metadata: qdrant.TopLevel}},
			store.Query{K: 5, Filter: store.Eq("author.name", "Ada")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, client := newFake(t, nil)
			x := create(t, with(test.opts, qdrant.Options{Client: client}))
			test.q.Text = "otter river"
			if _, err := x.Search(t.Context(), test.q); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name+".txt"), f.lastQuery())
		})
	}
}

func golden(t *testing.T, file string, m proto.Message) {
	t.Helper()
	got := prototext.MarshalOptions{Multiline: true}.Format(m)
	got = strings.ReplaceAll(got, ":  ", ": ") // the encoder varies its spaces on purpose
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // not secret
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
