package redisorders_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/sidecar/redisorders"
)

func TestMain(m *testing.M) {
	// go-redis dials a server that was away once a second, in a goroutine that ends up to a second after Close.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// patient are options under which no operation fails because the machine is busy.
func patient(url string) redisorders.Options {
	return redisorders.Options{URL: url, Budget: 30 * time.Second}
}

func open(t testing.TB, o redisorders.Options) *redisorders.Store {
	t.Helper()
	s, err := redisorders.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func key(n int) (k orders.Key) {
	binary.LittleEndian.PutUint64(k[:], uint64(n))
	return k
}

func wantOrder(t testing.TB, got, want []int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// slack is what a busy machine may add to a budget; far less than the second after which go-redis itself gives up.
const slack = 500 * time.Millisecond

// until asks each millisecond until f is true; a minute is long enough.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !f(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// gate is a server in front of another that holds back what connections say until it is opened.
type gate struct {
	addr   string
	opened chan struct{}
	conns  atomic.Int64
}

// hold says what is held back of a connection.
type hold int

const (
	nothing hold = iota
	requests
	answers
)

// open lets all connections go.
func (g *gate) open() { close(g.opened) }

// accepted returns the number of connections so far.
func (g *gate) accepted() int { return int(g.conns.Load()) }

// newGate holds back of the first connection the first of holds, and so on; the last is for all that follow.
func newGate(t testing.TB, backend string, holds ...hold) *gate {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{addr: l.Addr().String(), opened: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	pass := func(to, from net.Conn, wait bool) {
		if wait {
			select {
			case <-g.opened:
			case <-ctx.Done():
				return
			}
		}
		_, _ = io.Copy(to, from)
	}
	wg.Go(func() {
		for n := 0; ; n++ {
			client, err := l.Accept()
			if err != nil {
				return
			}
			g.conns.Add(1)
			var dialer net.Dialer
			server, err := dialer.DialContext(ctx, "tcp", backend)
			if err != nil {
				_ = client.Close()
				continue
			}
			h := holds[min(n, len(holds)-1)]
			wg.Go(func() {
				<-ctx.Done()
				_, _ = client.Close(), server.Close()
			})
			wg.Go(func() { pass(server, client, h == requests) })
			wg.Go(func() { pass(client, server, h == answers) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		wg.Wait()
	})
	return g
}
