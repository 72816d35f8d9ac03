package qdrant_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

var dense = qdrant.Options{Embedder: retrievertest.Embedder{}}

func search(ctx context.Context, x *qdrant.Index) error {
	_, err := x.Search(ctx, store.Query{Text: "otter", K: 3})
	return err
}

// TestCodes: what the server answers, and which error that is.
func TestCodes(t *testing.T) {
	for code, want := range map[codes.Code]error{
		codes.NotFound:          store.ErrNoIndex,
		codes.Unauthenticated:   store.ErrUnauthorized,
		codes.PermissionDenied:  store.ErrUnauthorized,
		codes.Unavailable:       store.ErrUnavailable,
		codes.ResourceExhausted: store.ErrUnavailable,
		codes.DeadlineExceeded:  context.DeadlineExceeded,
		codes.InvalidArgument:   store.ErrBadQuery,
	} {
		x := refusing(t, dense, code)
		err := search(t.Context(), x)
		if !errors.Is(err, want) || status.Code(err) != code || !strings.HasPrefix(err.Error(), `qdrant: search "test": `) {
			t.Errorf("%v: error %v, want %v", code, err, want)
		}
	}
	if err := search(t.Context(), refusing(t, dense, codes.NotFound)); !strings.Contains(err.Error(), "(Create makes it)") {
		t.Errorf("%v, want what makes the collection", err)
	}
	err := refusing(t, dense, codes.InvalidArgument).Upsert(t.Context(), []store.Document{{ID: "a", Text: "A page."}})
	if !errors.Is(err, store.ErrBadDocument) || !strings.Contains(err.Error(), "documents 1 to 1 of 1") {
		t.Errorf("Upsert: %v, want ErrBadDocument and which documents", err)
	}
	if err := search(t.Context(), refusing(t, dense, codes.Internal)); err == nil || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Internal: %v", err)
	}
}

// TestRateLimited: of a server that says when to come back the client makes an error without a code.
func TestRateLimited(t *testing.T) {
	_, client := newFake(t, func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
		if err := grpc.SetTrailer(ctx, metadata.Pairs("retry-after", "7")); err != nil {
			return nil, err
		}
		return nil, status.Error(codes.ResourceExhausted, "too many requests")
	})
	err := search(t.Context(), open(t, with(dense, qdrant.Options{Client: client})))
	limited, ok := errors.AsType[*api.QdrantResourceExhaustedError](err)
	if !ok || limited.RetryAfterS != 7 || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error %v, want the client's and ErrUnavailable", err)
	}
}

// failing answers the first n calls of each method with a code and passes the rest.
func failing(n int, code codes.Code, calls map[string]int) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		method := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
		if calls[method]++; calls[method] <= n {
			return nil, status.Error(code, "not now")
		}
		return next(ctx, r)
	}
}

// TestRetries: reads are sent again while the server is unavailable, writes and other errors are not.
func TestRetries(t *testing.T) {
	for _, test := range []struct {
		name     string
		code     codes.Code
		attempts int
		fails    int
		want     int  // queries sent
		ok       bool // the search succeeds
	}{
		{"two of three", codes.Unavailable, 0, 2, 3, true},
		{"never", codes.Unavailable, 0, 99, 3, false},
		{"no retries", codes.Unavailable, 1, 1, 1, false},
		{"other error", codes.Internal, 0, 1, 1, false},
		{"overload", codes.ResourceExhausted, 0, 1, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := map[string]int{}
			f, client := newFake(t, failing(test.fails, test.code, calls))
			f.collections["test"] = &fakeCollection{config: &api.CreateCollection{
				VectorsConfig: api.NewVectorsConfig(&api.VectorParams{Size: 256}),
			}}
			opts := with(dense, qdrant.Options{Client: client})
			opts.Attempts = test.attempts
			x := open(t, opts)
			if err := search(t.Context(), x); (err == nil) != test.ok || calls["Query"] != test.want {
				t.Errorf("%d queries, error %v; want %d and success %v", calls["Query"], err, test.want, test.ok)
			}
			err := x.Upsert(t.Context(), []store.Document{{ID: "a", Text: "A page."}})
			if err == nil || calls["Upsert"] != 1 {
				t.Errorf("%d upserts, error %v; want one that fails", calls["Upsert"], err)
			}
			if err := x.Delete(t.Context(), "", "a"); err == nil || calls["Delete"] != 1 {
				t.Errorf("%d deletes, error %v; want one that fails", calls["Delete"], err)
			}
		})
	}
}

// TestTimeout: Options.Timeout ends a call whose context has no end, and the error says which setting it was.
func TestTimeout(t *testing.T) {
	_, client := newFake(t, func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	opts := with(dense, qdrant.Options{Client: client})
	opts.Timeout = 50 * time.Millisecond
	err := search(t.Context(), open(t, opts))
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, store.ErrUnavailable) ||
		!strings.Contains(err.Error(), "Options.Timeout = 50ms") {
		t.Errorf("error %v, want a deadline, ErrUnavailable and the name of the setting", err)
	}
}

// lateContext has a deadline that nothing enforces yet, as on a machine whose timers run late.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

// TestServerSaysDeadline: the server's word that the deadline is over comes before the context's own end, and the error
// still says why the context ended.
func TestServerSaysDeadline(t *testing.T) {
	_, client := newFake(t, func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		return nil, status.Error(codes.DeadlineExceeded, "too late")
	})
	x := open(t, with(dense, qdrant.Options{Client: client}))
	why := errors.New("the user has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	if err := search(lateContext{ctx}, x); !errors.Is(err, why) {
		t.Errorf("error %v, want the context's cause", err)
	}
}

// TestDimension: an embedder of another length than the collection's is named as such, for queries and documents.
func TestDimension(t *testing.T) {
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			for _, vector := range []string{"", "meaning"} {
				opts := with(dense, server(t))
				opts.Vector = vector
				create(t, opts)
				opts.Embedder = retrievertest.Embedder{Size: 100}
				x := open(t, opts)
				err := search(t.Context(), x)
				if !errors.Is(err, store.ErrDimension) || !errors.Is(err, store.ErrBadQuery) ||
					!strings.Contains(err.Error(), "100 from Options.Embedder, 256") {
					t.Errorf("vector %q: Search: %v, want both lengths", vector, err)
				}
				err = x.Upsert(t.Context(), []store.Document{{ID: "a", Text: "A page."}})
				if !errors.Is(err, store.ErrDimension) || !errors.Is(err, store.ErrBadDocument) {
					t.Errorf("vector %q: Upsert: %v, want ErrDimension", vector, err)
				}
			}
		})
	}
}

// TestVectorName: a vector that the collection does not have is named.
func TestVectorName(t *testing.T) {
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			opts := with(dense, server(t))
			create(t, opts)
			opts.Vector = "meaning"
			if err := search(t.Context(), open(t, opts)); !errors.Is(err, store.ErrBadQuery) ||
				!strings.Contains(err.Error(), `"meaning" (Options.Vector)`) {
				t.Errorf("error %v, want the name of the vector", err)
			}
		})
	}
}

// servers are the fake and, where there is one, a real engine: options with an address and a collection to make.
func servers() map[string]func(testing.TB) qdrant.Options {
	return map[string]func(testing.TB) qdrant.Options{
		"fake": func(t testing.TB) qdrant.Options {
			_, client := newFake(t, nil)
			return qdrant.Options{Client: client}
		},
		"real": func(t testing.TB) qdrant.Options {
			addr := storetest.Qdrant(t)
			return qdrant.Options{Addr: addr, Collection: newCollection(t, addr)}
		},
	}
}

// TestRealKilled: the connection breaks while a query is under way. Without retries that is an error and no empty result;
// through a new gate the same index would go on.
func TestRealKilled(t *testing.T) {
	g := newGate(t, storetest.Qdrant(t), gateOptions{hold: true})
	opts := with(dense, qdrant.Options{Addr: g.addr})
	opts.Attempts = 1
	x := open(t, opts)
	result := make(chan error, 1)
	go func() { result <- search(t.Context(), x) }()
	<-g.inside
	g.kill()
	if err := <-result; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
}

// TestRealRestart: the server is away for the first two attempts of a search; its user does not notice.
func TestRealRestart(t *testing.T) {
	addr := storetest.Qdrant(t)
	opts := with(dense, qdrant.Options{Addr: addr, Collection: newCollection(t, addr)})
	if err := create(t, opts).Upsert(t.Context(), []store.Document{{ID: "a", Text: "The otter swims."}}); err != nil {
		t.Fatal(err)
	}
	g := newGate(t, addr, gateOptions{fail: 2})
	opts.Addr = g.addr
	hits, err := open(t, opts).Search(t.Context(), store.Query{Text: "otter", K: 3})
	if err != nil || len(hits) != 1 || g.calls.Load() != 3 {
		t.Errorf("hits %v, error %v after %d calls; want one hit after 3", hits, err, g.calls.Load())
	}
}

// TestRealKey: the right key opens the gate.
func TestRealKey(t *testing.T) {
	addr := storetest.Qdrant(t)
	opts := with(dense, qdrant.Options{Addr: addr, Collection: newCollection(t, addr)})
	create(t, opts)
	opts.Addr, opts.APIKey = newGate(t, addr, gateOptions{key: "right"}).addr, "right"
	if err := search(t.Context(), open(t, opts)); err != nil {
		t.Error(err)
	}
}
