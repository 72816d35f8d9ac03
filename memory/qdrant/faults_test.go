package qdrant_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/qdrant"
)

// fault is a fake of what a server answers to a call.
type fault func(ctx context.Context, opts []grpc.CallOption) error

// when makes a connection answer with f, while faulty says so. The client takes that for the server's answer.
func (f fault) when(faulty func() bool) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		if faulty() {
			return f(ctx, opts)
		}
		return call(ctx, method, in, out, conn, opts...)
	})
}

func code(c codes.Code) fault {
	return func(context.Context, []grpc.CallOption) error { return status.Error(c, "refused by the fake") }
}

// limited answers as a server that limits the rate and says when to come back.
func limited(_ context.Context, opts []grpc.CallOption) error {
	for _, o := range opts {
		if trailer, ok := o.(grpc.TrailerCallOption); ok {
			*trailer.TrailerAddr = metadata.Pairs("retry-after", "7")
		}
	}
	return status.Error(codes.ResourceExhausted, "too many requests")
}

// Each answer of a server is an error of its own kind, and nothing hangs.
func TestFaults(t *testing.T) {
	addr := storetest.Qdrant(t)
	for what, c := range map[string]struct {
		answer fault
		want   error
	}{
		"wrong key":    {code(codes.Unauthenticated), qdrant.ErrUnauthorized},
		"gone":         {code(codes.Unavailable), qdrant.ErrUnavailable},
		"overloaded":   {code(codes.ResourceExhausted), qdrant.ErrUnavailable},
		"rate limited": {limited, qdrant.ErrUnavailable},
		"hanging": {func(ctx context.Context, _ []grpc.CallOption) error {
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}, context.DeadlineExceeded},
	} {
		t.Run(what, func(t *testing.T) {
			var faulty atomic.Bool
			client := dial(t, addr, c.answer.when(faulty.Load))
			backend := open(t, qdrant.Options{Client: client, Collection: name(t, addr), Attempts: 2, Timeout: time.Second})
			store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Add(t.Context(), ana, said("apple"), memory.AddOptions{}); err != nil {
				t.Fatal(err)
			}
			faulty.Store(true)
			_, search := store.Search(t.Context(), ana, "apple", 1, memory.SearchOptions{})
			_, add := store.Add(t.Context(), ana, said("bread"), memory.AddOptions{})
			for call, err := range map[string]error{"Search": search, "Add": add} {
				if !errors.Is(err, c.want) {
					t.Errorf("%s = %v, want %v", call, err, c.want)
				}
			}
			faulty.Store(false)
			all, err := store.GetAll(t.Context(), ana, memory.ListOptions{})
			if err != nil || len(all) != 1 {
				t.Errorf("after it: %d memories, %v", len(all), err)
			}
		})
	}
}

// TestLargeAnswers: memories that together are more than an answer may be are asked for in several; one that is too large by
// itself is an error that names the setting.
func TestLargeAnswers(t *testing.T) {
	addr := storetest.Qdrant(t)
	shared := name(t, addr)
	texts := make([]string, 40)
	for i := range texts {
		texts[i] = fmt.Sprintf("%d %s", i, strings.Repeat("apple ", 1000))
	}
	whole := steady(t, open(t, qdrant.Options{Addr: addr, Collection: shared}))
	if _, err := whole.Add(t.Context(), ana, said(texts...), memory.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	small := steady(t, open(t, qdrant.Options{Addr: addr, Collection: shared, MaxMessageBytes: 64 << 10}))
	all, err := small.GetAll(t.Context(), ana, memory.ListOptions{})
	if err != nil || len(all) != len(texts) {
		t.Errorf("%d memories, %v; want %d", len(all), err, len(texts))
	}
	if _, err := whole.Add(t.Context(), ana, said(strings.Repeat("bread ", 20_000)), memory.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = small.GetAll(t.Context(), ana, memory.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), "Options.MaxMessageBytes") || errors.Is(err, qdrant.ErrUnavailable) {
		t.Errorf("a memory that is too large: %v, want an error that names the setting", err)
	}
}
