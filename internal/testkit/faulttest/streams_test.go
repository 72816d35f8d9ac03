//go:build linux

package faulttest_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// TestManyStreams: 5,000 streams are open together, each behind its first token. When they go on, each client gets what
// the upstream said to it, byte for byte, and afterwards the sidecar holds no more than before. What an idle stream takes
// in its memory is logged.
func TestManyStreams(t *testing.T) {
	if os.Getenv("RAGPILOT_FAULTS") != "1" {
		t.Skip("needs the machine for itself: set RAGPILOT_FAULTS=1, as .ci/run long does")
	}
	const wanted, tokens = 5000, 24
	for _, c := range []struct {
		name       string
		documents  int // in each request
		mostMemory int // KiB for an idle stream
	}{{"questions", 0, 192}, {"documents", 8, 384}} {
		t.Run(c.name, func(t *testing.T) {
			streams := affordable(t, wanted)
			g := &gate{next: upstream.New(upstream.Options{}), opened: make(chan struct{})}
			e := newScripted(t, g)
			s := serve(t, e.URL, "", "--log-level", "info")
			s.client = slimClient(t)
			before := s.atRest(t, e)
			resident := s.residentKiB(t)
			bodies, err := httpload.Generate(httpload.BodyOptions{
				Documents: 500 * min(c.documents, 1), K: c.documents, BlockTokens: 200, Place: httpload.InSystem, Stream: true, MaxTokens: tokens,
			})
			if err != nil {
				t.Fatal(err)
			}

			began := time.Now()
			clients := s.openAll(t, streams, func(i int) request { return newRequest(chatPath, bodies.Body(i)) })
			g.await(t, streams)
			t.Logf("%d streams open after %v", streams, time.Since(began))
			each := (s.residentKiB(t) - resident) / streams
			heap, stacks := s.liveKiB(t)
			t.Logf(
				"an idle stream takes %d KiB of resident memory (of live memory %d KiB of heap and %d of stacks)",
				each,
				heap/streams,
				stacks/streams,
			)
			if each > c.mostMemory {
				t.Errorf("%d KiB of memory for each stream, want at most %d", each, c.mostMemory)
			}

			close(g.opened)
			clients.Wait()
			t.Logf("all at their end after %v", time.Since(began))
			arrivals := e.arrivals(t)
			s.ledger.account(t, arrivals, true)
			s.ledger.takenIsAnswered(t, arrivals)
			if want := streams + 1; len(arrivals) != want { // one before the streams
				t.Errorf("%d requests came to the engine, want %d", len(arrivals), want)
			}
			before.files += keptConnections
			s.recovered(t, e, before)
		})
	}
}

// keptConnections is how many connections to the upstream are kept for later requests. That the upstream has closed one
// need not be noticed before the next request or the end of its time.
const keptConnections = 1024

// affordable returns how many streams this process and the sidecar may have, with two open files for each.
func affordable(t *testing.T, wanted int) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	n := wanted
	if most := (min(limit.Max, 1<<20) - 500) / 2; most < uint64(wanted) {
		n = int(most) // below 1<<20
		t.Logf("only %d streams, as processes may open %d files", n, limit.Max)
	}
	return n
}

// slimClient is a client with thousands of connections.
func slimClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// openAll opens streams, some hundred at a time, and returns what waits until the clients of all of them have what they
// were to get.
func (s *sidecar) openAll(t *testing.T, streams int, ask func(i int) request) *sync.WaitGroup {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	opening, clients := make(chan struct{}, 256), new(sync.WaitGroup)
	for i := range streams {
		opening <- struct{}{}
		clients.Go(func() {
			opened := sync.OnceFunc(func() { <-opening })
			defer opened()
			s.sendWatched(ctx, ask(i), func([]byte) { opened() })
		})
	}
	return clients
}

// gate holds streams back behind their first pieces until it is opened.
type gate struct {
	next    http.Handler
	opened  chan struct{}
	waiting atomic.Int64
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.next.ServeHTTP(&gated{ResponseWriter: w, gate: g, left: r.Context().Done(), pieces: 3}, r)
}

// await waits until so many streams are held back.
func (g *gate) await(t *testing.T, streams int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); g.waiting.Load() < int64(streams); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%d of %d streams are open", g.waiting.Load(), streams)
		}
	}
}

// gated is an answer that is held back. Those of one piece pass.
type gated struct {
	http.ResponseWriter
	gate   *gate
	left   <-chan struct{}
	pieces int // to pass, before it is held back
}

func (w *gated) Write(p []byte) (int, error) {
	if w.pieces--; w.pieces == 0 {
		if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil {
			return 0, err
		}
		w.gate.waiting.Add(1)
		select {
		case <-w.gate.opened:
		case <-w.left:
		}
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (w *gated) Unwrap() http.ResponseWriter { return w.ResponseWriter }

var (
	residentSize = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)
	heapAlloc    = regexp.MustCompile(`(?m)^go_memstats_heap_alloc_bytes (\S+)$`)
	stackInUse   = regexp.MustCompile(`(?m)^go_memstats_stack_inuse_bytes (\S+)$`)
)

// residentKiB returns the memory that the process has now.
func (p *process) residentKiB(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return int(number(t, residentSize, string(text)))
}

// liveKiB returns what of the process's memory is in use, after a collection.
func (s *sidecar) liveKiB(t *testing.T) (heap, stacks int) {
	t.Helper()
	s.ask(t, "/debug/pprof/heap?gc=1")
	_, text := s.ask(t, "/metrics")
	return int(number(t, heapAlloc, text)) >> 10, int(number(t, stackInUse, text)) >> 10
}

func number(t *testing.T, re *regexp.Regexp, text string) float64 {
	t.Helper()
	found := re.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %v in\n%s", re, text)
	}
	n, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
