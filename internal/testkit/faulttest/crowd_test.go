//go:build linux

package faulttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestCrowdOfBigBodies: many large bodies at once take no more memory than allowed. Those that find no room are asked to
// come again, and get in when they do.
func TestCrowdOfBigBodies(t *testing.T) {
	faults(t)
	const (
		clients = 32
		size    = 8 * mib
		inUse   = 64 * mib
		// Of a body there are at most its bytes, a copy that is parsed, texts in which something is escaped, and the bytes that
		// are forwarded; the garbage collector lets that double.
		most = 40 + 2*4*inUse/mib
	)
	e := newScripted(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(50 * time.Millisecond) // bodies are held until the answer begins
		fmt.Fprint(w, "{}")
	}))
	s := serve(t, e.URL, fmt.Sprintf("limits: {body_bytes: %d, in_flight_bytes: %d}\ntimeouts: {in_flight: 1s}", 2*size, inUse))
	before := s.atRest(t, e)
	var refused, again atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for end := time.Now().Add(2 * patience); ; again.Add(1) {
				q := bigChat(i, size)
				r := s.send(t, q)
				switch {
				case r.code == http.StatusOK && r.err == nil:
					return
				case r.code == http.StatusServiceUnavailable && r.header.Get("Retry-After") != "" && time.Now().Before(end):
					refused.Add(1)
				case r.code == 0 && time.Now().Before(end): // the server had answered and closed while the body was on its way
				default:
					t.Errorf("%v", r)
					return
				}
				<-time.After(100 * time.Millisecond)
			}
		})
	}
	all.Wait()
	s.recovered(t, e, before)
	_, metrics := s.ask(t, "/metrics")
	if !strings.Contains(metrics, "\nragpilot_http_body_bytes_in_flight 0\n") {
		t.Error("bytes of bodies are still counted")
	}
	peak := s.peakMiB(t)
	if peak > most {
		t.Errorf("%d MiB of memory, want at most %d", peak, most)
	}
	t.Logf(
		"%d bodies of %d MiB, %d MiB allowed: %d MiB of memory, %d refused, %d tried again",
		clients,
		size/mib,
		inUse/mib,
		peak,
		refused.Load(),
		again.Load(),
	)
	s.ledger.account(t, e.arrivals(t), true)
}

// bigChat is a chat of so many bytes, with lines and quotes in it.
func bigChat(i, size int) request {
	line := fmt.Sprintf("what \"%d\" says in this line is of no importance to anybody\n", i)
	text, _ := json.Marshal(strings.Repeat(line, size/(len(line)+3))) // three escapes
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"model":"m","messages":[{"role":"user","content":%s}],"max_tokens":1,"seed":%d}`, text, i)
	return newRequest(chatPath, b.Bytes())
}
