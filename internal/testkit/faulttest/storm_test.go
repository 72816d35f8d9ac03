//go:build linux

package faulttest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestCancellationStorm: of 500 clients nine in ten leave, each at a moment of its own, and what they left behind goes too.
func TestCancellationStorm(t *testing.T) {
	faults(t)
	for name, start := range map[string]func(*testing.T, string, string, ...string) *sidecar{"HTTP 1": serve, "HTTP 2": serveTLS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const clients = 500
			e := newEngine(t, upstream.Options{Delay: 100 * time.Millisecond, TokenDelay: 50 * time.Millisecond})
			s := start(t, e.URL, "")
			before := s.atRest(t, e)
			bodies := storm(t)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			var group sync.WaitGroup
			var whole, left atomic.Int64
			for i := range clients {
				begin, stay := time.Duration(random.IntN(700))*time.Millisecond, time.Duration(random.IntN(1500))*time.Millisecond
				if i%10 == 0 {
					stay = 2 * patience // and gets its answer
				}
				q := newRequest(chatPath, bodies[i%len(bodies)].Body(i))
				group.Go(func() {
					<-time.After(begin)
					ctx, cancel := context.WithTimeout(t.Context(), stay)
					defer cancel()
					switch r := s.sendWatched(ctx, q, func([]byte) {}); {
					case r.code == http.StatusOK && r.err == nil:
						whole.Add(1)
					case ctx.Err() == nil || r.code != 0 && r.code != http.StatusOK:
						t.Errorf("it did not leave: %v", r)
					default:
						left.Add(1)
					}
				})
			}
			group.Wait()
			arrivals := e.arrivals(t) // waits until none runs upstream
			t.Logf("%d answers complete, %d clients left, %d requests upstream", whole.Load(), left.Load(), len(arrivals))
			if whole.Load() < clients/10 || left.Load() == 0 {
				t.Error("want some of both")
			}
			s.recovered(t, e, before)
			s.ledger.account(t, e.arrivals(t), true)
		})
	}
}

// storm makes requests with documents, some for streams.
func storm(t *testing.T) (all []*httpload.Made) {
	t.Helper()
	for _, o := range []httpload.BodyOptions{
		{Documents: 100, K: 8, BlockTokens: 100, Place: httpload.InSystem, Stream: true, MaxTokens: 20},
		{Documents: 100, K: 8, BlockTokens: 100, Place: httpload.InTool, MaxTokens: 8},
		{Documents: 100, K: 8, BlockTokens: 100, Place: httpload.InTool, Stream: true, MaxTokens: 14},
	} {
		made, err := httpload.Generate(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, made)
	}
	return all
}

// TestUpstreamRefuses: while an engine takes no connections clients get a 502 at once, and when it does again all is as it
// was.
func TestUpstreamRefuses(t *testing.T) {
	faults(t)
	addr := testkit.FreeAddress(t)
	up := launchBench(t, addr)
	s := serve(t, "http://"+addr, "")
	s.alive(t)
	before, _ := s.vitals(t)

	stop := make(chan struct{})
	var clients sync.WaitGroup
	var good, refused atomic.Int64
	var down atomic.Bool
	for i := range 24 {
		clients.Go(func() {
			for n := i; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				q := wholeChat(3)
				if n%2 == 0 {
					q = streamChat(3)
				}
				switch r := s.send(t, q); {
				case r.code == http.StatusOK && r.err == nil:
					good.Add(1)
				case r.code == http.StatusBadGateway && r.err == nil, down.Load() && r.code == http.StatusOK && !r.ended():
					refused.Add(1)
					<-time.After(5 * time.Millisecond) // as clients that try again do
				default:
					t.Errorf("neither answered nor refused: %v", r)
				}
			}
		})
	}
	more := func(n *atomic.Int64, by int64) func() bool {
		to := n.Load() + by
		return func() bool { return n.Load() >= to }
	}
	counted := 0
	for range 2 {
		eventually(t, "answers", more(&good, 150))
		down.Store(true)
		up.signal(t, os.Interrupt)
		up.exit(t)
		counted += up.requests(t)
		eventually(t, "refusals", more(&refused, 150))
		if code, text := s.ask(t, "/readyz"); code != http.StatusOK {
			t.Errorf("readyz: %d %s", code, text) // it is about this process
		}
		up = launchBench(t, addr)
		eventually(t, "answers again", more(&good, 100))
		down.Store(false)
	}
	eventually(t, "answers", more(&good, 150))
	close(stop)
	clients.Wait()
	s.alive(t)
	s.client.CloseIdleConnections()
	up.signal(t, os.Interrupt) // closes what the sidecar holds open
	up.exit(t)
	counted += up.requests(t)
	up = launchBench(t, addr)
	s.recovered(t, nil, before)
	// What clients got answers to, the engine has seen, and hardly more: what was cut when it went.
	if n := int(good.Load()) + 2; counted < n || counted > n+2*24 {
		t.Errorf("the engine saw %d requests, clients got %d answers", counted, n)
	}
	t.Logf("%d answers, %d refusals, %d requests upstream", good.Load(), refused.Load(), counted)
	up.kill()
}

// launchBench starts `ragpilot bench upstream`.
func launchBench(t *testing.T, addr string) *process {
	t.Helper()
	name, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, nil, name, "bench", "upstream", "--listen", addr, "--delay", "2ms", "--token-delay", "2ms")
	p.log.until(t, `listening on \S+\n`)
	return p
}

var benchCount = regexp.MustCompile(`(\d+) requests, \d+ prompt tokens`)

// requests is how many requests `ragpilot bench upstream` says that it has answered.
func (p *process) requests(t *testing.T) int {
	t.Helper()
	found := benchCount.FindStringSubmatch(p.log.String())
	if found == nil {
		t.Error(fmt.Errorf("no count in %q", p.log))
		return 0
	}
	n, _ := strconv.Atoi(found[1]) // digits
	return n
}
