//go:build unix

package qdrant_test

import (
	"context"
	"errors"
	"net"
	"path"
	"sync/atomic"
	"testing"
	"time"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// within a minute nothing here has to wait; what takes longer hangs.
const patience = time.Minute

// trap stops a server before the first request of a method leaves, so that it stays without an answer, and calls sent when
// it has left.
type trap struct {
	method string
	server *storetest.Server
	sent   func()
	state  atomic.Int32 // 0: not set, 1: waits for the call, 2: waits for the request to leave, 3: done
	t      testing.TB
}

func (tr *trap) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if path.Base(info.FullMethodName) == tr.method && tr.state.CompareAndSwap(1, 2) {
		tr.server.Halt(tr.t)
		return context.WithValue(ctx, tr, true)
	}
	return ctx
}

func (tr *trap) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, out := s.(*stats.OutPayload); out && ctx.Value(tr) != nil && tr.state.CompareAndSwap(2, 3) {
		tr.sent()
	}
}

func (*trap) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (*trap) HandleConn(context.Context, stats.ConnStats) {}

// trapped makes an index with one document on a server of its own.
func trapped(t *testing.T, method string) (*qdrant.Index, *trap) {
	t.Helper()
	storetest.Qdrant(t)
	tr := &trap{method: method, server: storetest.Start(t, "qdrant"), t: t}
	tcp, err := net.ResolveTCPAddr("tcp", tr.server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient(&api.Config{
		Host: tcp.IP.String(), Port: tcp.Port, PoolSize: 1, SkipCompatibilityCheck: true,
		GrpcOptions: []grpc.DialOption{grpc.WithStatsHandler(tr)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	opts := with(dense, qdrant.Options{Client: client})
	opts.Timeout = -1 // only the context ends a call
	x := create(t, opts)
	if err := x.Upsert(t.Context(), []store.Document{{ID: "a", Text: "The otter swims."}}); err != nil {
		t.Fatal(err)
	}
	return x, tr
}

// calls are what a server can fail at.
var calls = map[string]struct {
	method string
	run    func(ctx context.Context, x *qdrant.Index) error
}{
	"search": {"Query", search},
	"upsert": {"Upsert", func(ctx context.Context, x *qdrant.Index) error {
		return x.Upsert(ctx, []store.Document{{ID: "b", Text: "The otter dives."}})
	}},
}

// TestServerKilled: the server's process is killed when it has a request and has not answered it. The call fails with an error
// that says so, and so do later ones.
func TestServerKilled(t *testing.T) {
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			x, tr := trapped(t, c.method)
			tr.sent = func() { tr.server.Kill(t) }
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			tr.state.Store(1)
			for _, when := range []string{"then", "afterwards"} {
				if err := c.run(ctx, x); !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil || tr.state.Load() != 3 {
					t.Errorf("%s: %v (context: %v), want ErrUnavailable", when, err, ctx.Err())
				}
			}
		})
	}
}

// TestServerHangs: the server's process stops and keeps its connections. The call ends with its context, and when the server
// goes on, so does the index.
func TestServerHangs(t *testing.T) {
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			x, tr := trapped(t, c.method)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			called, end := context.WithCancel(ctx)
			tr.sent = end
			tr.state.Store(1)
			if err := c.run(called, x); !errors.Is(err, context.Canceled) || ctx.Err() != nil {
				t.Errorf("%v (context: %v), want Canceled", err, ctx.Err())
			}
			tr.server.Resume(t)
			if err := c.run(ctx, x); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}
