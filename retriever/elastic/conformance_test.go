package elastic_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// oneShard makes scores exact, and an index on one server complete.
var oneShard = map[string]any{"number_of_shards": 1, "number_of_replicas": 0}

// TestConformance runs the suite of all stores against a real server, the faults through a fake proxy in front of it.
func TestConformance(t *testing.T) {
	for _, v := range []struct {
		name       string
		opts       elastic.Options
		fusesRanks bool
	}{
		{name: "bm25", opts: elastic.Options{}},
		// The suite's pages differ in one word each. Of vectors so alike the server's index misses some, unless it compares many.
		{name: "knn", opts: elastic.Options{Embedder: retrievertest.Embedder{}, Mode: store.Dense, Candidates: 2000}},
		{name: "hybrid", opts: elastic.Options{Embedder: retrievertest.Embedder{}}, fusesRanks: true},
		{name: "top-level", opts: elastic.Options{Layout: elastic.Layout{
			ID: "_key", Text: "_text", Version: "_version_of_text",
			Metadata: elastic.TopLevel,
		}}},
	} {
		t.Run(v.name, func(t *testing.T) {
			conform(t, v.opts, v.fusesRanks, func(_ testing.TB, o elastic.Options) elastic.Options { return o })
		})
	}
}

// conform runs the suite. What connect makes of options has the same servers and credentials.
func conform(t *testing.T, opts elastic.Options, fusesRanks bool, connect func(testing.TB, elastic.Options) elastic.Options) {
	url := storetest.Elasticsearch(t)
	with := func(t testing.TB, change func(*elastic.Options)) elastic.Options {
		opts := opts
		opts.Addresses, opts.Index, opts.Timeout = []string{url}, "ragpilot-test-missing", time.Minute
		change(&opts)
		return connect(t, opts)
	}
	fault := func(o gateOptions, change func(*elastic.Options)) func(t testing.TB) store.Searcher {
		return func(t testing.TB) store.Searcher {
			g := newGate(t, url, o)
			return open(t, with(t, func(o *elastic.Options) {
				o.Addresses = []string{g.URL}
				change(o)
			}))
		}
	}
	retrievertest.Run(t, retrievertest.Subject{
		New: func(t testing.TB) retrievertest.Store { return create(t, with(t, func(*elastic.Options) {})) },
		Tenants: func(t testing.TB) retrievertest.Store {
			return create(t, with(t, func(o *elastic.Options) { o.Layout.Tenant = "tenant" }))
		},
		Missing:      fault(gateOptions{}, func(*elastic.Options) {}),
		Unauthorized: fault(gateOptions{password: "right"}, func(o *elastic.Options) { o.Username, o.Password = "user", "wrong" }),
		Unavailable: func(t testing.TB) store.Searcher {
			return open(t, with(t, func(o *elastic.Options) { o.Addresses = []string{"http://" + nobody(t)} }))
		},
		Hanging:    fault(gateOptions{hold: true}, func(*elastic.Options) {}),
		FusesRanks: fusesRanks,
	})
}

func open(t testing.TB, opts elastic.Options) *elastic.Index {
	t.Helper()
	return testkit.Opened[*elastic.Index](t)(elastic.Open(opts))
}

var indexes atomic.Int64

// create makes an index of its own for a test, and removes it with the test.
func create(t testing.TB, opts elastic.Options) *elastic.Index {
	t.Helper()
	opts.Index = fmt.Sprintf("ragpilot-test-%d-%d", time.Now().UnixNano(), indexes.Add(1))
	x := open(t, opts)
	if err := x.Create(t.Context(), elastic.Schema{Settings: oneShard}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test may have closed its own
		again, err := elastic.Open(opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Drop(context.Background()); err != nil {
			t.Error(err)
		}
		_ = again.Close()
	})
	return x
}

// nobody returns an address where nothing listens.
func nobody(t testing.TB) string {
	t.Helper()
	return testkit.FreeAddress(t)
}
