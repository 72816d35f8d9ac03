//go:build linux

package faulttest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestStalledReader: clients that read nothing of a stream without end are given up, however many they are, and the upstream
// sees it; a stream that is only silent goes on.
func TestStalledReader(t *testing.T) {
	faults(t)
	const clients = 30
	e := newScripted(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		out := http.NewResponseController(w)
		piece := []byte("data: " + strings.Repeat("x", 16<<10) + "\n\n")
		if r.Header.Get("X-Fault") == "silent" {
			for range 3 {
				fmt.Fprint(w, "data: 1\n\n")
				_ = out.Flush()
				<-time.After(2500 * time.Millisecond)
			}
			return
		}
		if r.Header.Get("X-Fault") == "" {
			return
		}
		for {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	s := serve(t, e.URL, "timeouts: {write: 1s}")
	before := s.atRest(t, e)
	var silent sync.WaitGroup
	silent.Go(func() {
		q := streamChat(1)
		q.header = []string{"X-Fault", "silent"}
		if r := s.send(t, q); r.err != nil || strings.Count(string(r.body), "data: 1") != 3 {
			t.Errorf("a stream that was silent now and then: %v", r)
		}
	})
	body := `{"model":"m","messages":[{"role":"user","content":"q"}],"stream":true}`
	for i := range clients {
		path := []string{chatPath, plainPath, passPath}[i%3]
		fmt.Fprint(dial(t, s.addr), head(path, "X-Fault: endless", fmt.Sprint("Content-Length: ", len(body)))+body)
	}
	stalled := func() bool {
		_, metrics := s.ask(t, "/metrics")
		return strings.Contains(metrics, fmt.Sprintf("\nragpilot_http_answers_stalled_total %d\n", clients))
	}
	eventually(t, "end of those that nobody reads", stalled)
	eventually(t, "end of their work upstream", func() bool { return e.inFlight() <= 1 })
	silent.Wait()
	s.recovered(t, e, before)
	if !stalled() {
		t.Error("more were ended")
	}
}

// TestLameDuck: when it is stopped, the server goes on for the time that was set, says that it is not ready, and then ends in good
// order.
func TestLameDuck(t *testing.T) {
	faults(t)
	e := newScripted(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	s := serve(t, e.URL, "", "--lame-duck", "4s")
	s.alive(t)
	began := time.Now()
	s.signal(t, syscall.SIGTERM)
	s.log.until(t, "requests are still taken")
	if code, _ := s.ask(t, "/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("readyz: %d", code)
	}
	s.alive(t) // over a new connection
	if code := s.exit(t); code != 0 || time.Since(began) < 4*time.Second {
		t.Errorf("status %d after %v", code, time.Since(began))
	}
	s.ledger.account(t, e.arrivals(t), true)
}

// TestUnsolicited: what an upstream sends without being asked reaches neither a client nor the log, every line of which is one
// of ours.
func TestUnsolicited(t *testing.T) {
	faults(t)
	e := newScripted(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
		fmt.Fprint(out, answer)
		_ = out.Flush()
		<-time.After(50 * time.Millisecond) // the connection idles by now
		fmt.Fprint(out, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nthe secret\n")
		_ = out.Flush()
		<-time.After(50 * time.Millisecond)
	}))
	s := serve(t, e.URL, "")
	for range 5 {
		for _, path := range []string{chatPath, passPath} {
			q := wholeChat(1)
			q.path = path
			if r := s.send(t, q); r.code != http.StatusOK || string(r.body) != "{}" {
				t.Errorf("got %v", r)
			}
			<-time.After(70 * time.Millisecond)
		}
	}
	for line := range strings.Lines(s.log.String()) {
		if !strings.HasPrefix(line, "time=") || strings.Contains(line, "secret") {
			t.Errorf("in the log: %s", line)
		}
	}
}
