//go:build unix

package qdrant_test

import (
	"context"
	"errors"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/qdrant"
)

// trap does something to a server at the first call of a method: halt before the request leaves, so that it stays without
// an answer, and sent when it has left.
type trap struct {
	method     string
	halt, sent func()
	state      atomic.Int32 // 0: not set, 1: waits for the call, 2: waits for the request to leave, 3: done
}

func (tr *trap) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if path.Base(info.FullMethodName) == tr.method && tr.state.CompareAndSwap(1, 2) {
		tr.halt()
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

// trapped opens a store on a server of its own, with one memory in it.
func trapped(t *testing.T, server *storetest.Server, tr *trap, opts qdrant.Options) *memory.Local {
	t.Helper()
	opts.Client = dial(t, server.Addr, grpc.WithStatsHandler(tr))
	store, err := memory.New(open(t, opts), memory.Config{Embedder: memory.Lexical})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Add(t.Context(), ana, said("apple"), memory.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	return store
}

// moments are the calls in whose midst a server fails, and the error that the user of the store gets if it is gone for good.
var moments = []struct {
	name, method string
	change       bool // of an addition, not of a search
	want         error
}{
	{"search reads", "Scroll", false, qdrant.ErrUnavailable},
	{"change reads", "Get", true, qdrant.ErrUnavailable},
	{"change writes points", "Upsert", true, qdrant.ErrUnavailable},
	{"change becomes valid", "SetPayload", true, qdrant.ErrUnknownOutcome},
}

// within a minute nothing here has to wait; what takes longer hangs.
const patience = time.Minute

// TestServerKilled: the server's process is killed when it has a request and has not answered it. What was asked for fails
// with an error that says so, and so does what follows.
func TestServerKilled(t *testing.T) {
	storetest.Qdrant(t)
	for _, m := range moments {
		t.Run(m.name, func(t *testing.T) {
			server := storetest.Start(t, "qdrant")
			tr := &trap{method: m.method, halt: func() { server.Halt(t) }, sent: func() { server.Kill(t) }}
			store := trapped(t, server, tr, qdrant.Options{Timeout: -1}) // only the context ends a call
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			tr.state.Store(1)
			err := ask(ctx, store, m.change)
			if !errors.Is(err, m.want) || ctx.Err() != nil {
				t.Errorf("%v (context: %v), want %v", err, ctx.Err(), m.want)
			}
			if tr.state.Load() != 3 {
				t.Errorf("the server was not killed: no call of %s", m.method)
			}
			for _, change := range []bool{false, true} {
				if err := ask(ctx, store, change); !errors.Is(err, qdrant.ErrUnavailable) || ctx.Err() != nil {
					t.Errorf("afterwards: %v (context: %v), want ErrUnavailable", err, ctx.Err())
				}
			}
		})
	}
}

// TestServerHangs: the server's process stops and keeps its connections. A call ends with its context, or a grace after it,
// although no other time is set; and when the server goes on, all is there, and what was begun is ended or undone.
func TestServerHangs(t *testing.T) {
	storetest.Qdrant(t)
	server := storetest.Start(t, "qdrant")
	for i, m := range moments {
		t.Run(m.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			called, end := context.WithCancel(ctx)
			tr := &trap{method: m.method, halt: func() { server.Halt(t) }, sent: end}
			store := trapped(t, server, tr, qdrant.Options{Collection: "hangs-" + string(rune('a'+i)), Timeout: -1})
			tr.state.Store(1)
			result := make(chan error, 1)
			go func() { result <- ask(called, store, m.change) }()
			select {
			case err := <-result:
				if !errors.Is(err, context.Canceled) || tr.state.Load() != 3 {
					t.Errorf("%v, want Canceled", err)
				}
			case <-ctx.Done():
				t.Error("the call goes on without its context")
			}
			server.Resume(t)
			if err := ask(ctx, store, true); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			all, err := store.GetAll(ctx, ana, memory.ListOptions{})
			if err != nil || len(all) != 2 {
				t.Errorf("afterwards: %d memories, %v; want both", len(all), err)
			}
		})
	}
}

// ask searches, or adds a memory.
func ask(ctx context.Context, store *memory.Local, change bool) error {
	if change {
		_, err := store.Add(ctx, ana, said("bread"), memory.AddOptions{})
		return err
	}
	_, err := store.Search(ctx, ana, "apple", 1, memory.SearchOptions{})
	return err
}
