package qdrant_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	api "github.com/qdrant/go-client/qdrant"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// variants are the ways to search.
var variants = []struct {
	name       string
	opts       qdrant.Options
	fusesRanks bool
}{
	{name: "dense", opts: qdrant.Options{Embedder: retrievertest.Embedder{}}},
	{name: "named", opts: qdrant.Options{Embedder: retrievertest.Embedder{}, Vector: "meaning"}},
	{name: "sparse", opts: qdrant.Options{Sparse: qdrant.Words{}}},
	{name: "rrf", opts: qdrant.Options{Embedder: retrievertest.Embedder{}, Sparse: qdrant.Words{}, Vector: "meaning"}, fusesRanks: true},
	{name: "dbsf", opts: qdrant.Options{
		Embedder: retrievertest.Embedder{}, Sparse: qdrant.Words{}, Vector: "meaning", Fusion: qdrant.DBSF,
	}},
	{name: "top-level", opts: qdrant.Options{
		Embedder: retrievertest.Embedder{},
		Layout:   qdrant.Layout{ID: "_id", Text: "_text", Version: "_version", Metadata: qdrant.TopLevel},
	}},
}

func TestFakeConformance(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			fresh := func(t testing.TB, opts qdrant.Options) *qdrant.Index {
				_, opts.Client = newFake(t, nil)
				return create(t, opts)
			}
			s := subject(v.opts, fresh)
			s.FusesRanks = v.fusesRanks
			s.Missing = func(t testing.TB) store.Searcher {
				_, client := newFake(t, nil)
				return open(t, with(v.opts, qdrant.Options{Client: client, Collection: "missing"}))
			}
			s.Unauthorized = func(t testing.TB) store.Searcher { return refusing(t, v.opts, codes.Unauthenticated) }
			s.Unavailable = func(t testing.TB) store.Searcher {
				return open(t, with(v.opts, qdrant.Options{Addr: nobody(t)}))
			}
			s.Hanging = func(t testing.TB) store.Searcher {
				_, client := newFake(t, func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
				return open(t, with(v.opts, qdrant.Options{Client: client}))
			}
			retrievertest.Run(t, s)
		})
	}
}

// TestRealConformance: the same against a real engine, the faults through fakes in front of it.
func TestRealConformance(t *testing.T) {
	addr := storetest.Qdrant(t)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			fresh := func(t testing.TB, opts qdrant.Options) *qdrant.Index {
				opts.Addr, opts.Collection = addr, newCollection(t, addr)
				return create(t, opts)
			}
			s := subject(v.opts, fresh)
			s.FusesRanks = v.fusesRanks
			s.Missing = func(t testing.TB) store.Searcher {
				return open(t, with(v.opts, qdrant.Options{Addr: addr, Collection: "ragpilot-test-missing"}))
			}
			s.Unauthorized = func(t testing.TB) store.Searcher {
				gate := newGate(t, addr, gateOptions{key: "right"})
				return open(t, with(v.opts, qdrant.Options{Addr: gate.addr, APIKey: "wrong"}))
			}
			s.Unavailable = func(t testing.TB) store.Searcher {
				return open(t, with(v.opts, qdrant.Options{Addr: nobody(t)}))
			}
			s.Hanging = func(t testing.TB) store.Searcher {
				gate := newGate(t, addr, gateOptions{hold: true})
				return open(t, with(v.opts, qdrant.Options{Addr: gate.addr}))
			}
			retrievertest.Run(t, s)
		})
	}
}

// subject is the suite's subject for these options and this way to make a store.
func subject(opts qdrant.Options, fresh func(testing.TB, qdrant.Options) *qdrant.Index) retrievertest.Subject {
	return retrievertest.Subject{
		New: func(t testing.TB) retrievertest.Store { return fresh(t, with(opts, qdrant.Options{})) },
		Tenants: func(t testing.TB) retrievertest.Store {
			opts := with(opts, qdrant.Options{})
			opts.Layout.Tenant = "_tenant"
			return fresh(t, opts)
		},
	}
}

// with adds a server to options.
func with(opts, server qdrant.Options) qdrant.Options {
	opts.Client, opts.Addr, opts.APIKey, opts.Collection = server.Client, server.Addr, server.APIKey, server.Collection
	if opts.Collection == "" {
		opts.Collection = "test"
	}
	return opts
}

func open(t testing.TB, opts qdrant.Options) *qdrant.Index {
	t.Helper()
	return testkit.Opened[*qdrant.Index](t)(qdrant.Open(opts))
}

// create opens an index and makes its collection. Nothing is refused for its time: documents of 10 MB take theirs on a
// machine that is busy.
func create(t testing.TB, opts qdrant.Options) *qdrant.Index {
	t.Helper()
	if opts.Timeout == 0 {
		opts.Timeout = time.Minute
	}
	x := open(t, opts)
	if err := x.Create(t.Context(), "lang"); err != nil {
		t.Fatal(err)
	}
	return x
}

var collections atomic.Int64

// newCollection returns a name that is dropped from the server at the end of the test.
func newCollection(t testing.TB, addr string) string {
	t.Helper()
	name := fmt.Sprintf("ragpilot-test-%d-%s", collections.Add(1), qdrant.PointID("", t.Name())[:8])
	client := dialReal(t, addr)
	_ = client.DeleteCollection(t.Context(), name) // of a run that was killed
	t.Cleanup(func() {
		if err := client.DeleteCollection(context.Background(), name); err != nil {
			t.Error(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return name
}

func dialReal(t testing.TB, addr string) *api.Client {
	t.Helper()
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient(&api.Config{Host: tcp.IP.String(), Port: tcp.Port, PoolSize: 1, SkipCompatibilityCheck: true})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// nobody returns an address where nothing listens.
func nobody(t testing.TB) string {
	t.Helper()
	return testkit.FreeAddress(t)
}

// refusing is an index of a fake that answers everything with the code.
func refusing(t testing.TB, opts qdrant.Options, code codes.Code) *qdrant.Index {
	_, client := newFake(t, func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		return nil, status.Error(code, "refused by the fake")
	})
	return open(t, with(opts, qdrant.Options{Client: client}))
}
