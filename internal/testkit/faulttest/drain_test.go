//go:build linux

package faulttest_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// TestDrain: when it is stopped under load, the server says so, ends every answer that it has begun, and goes with status 0.
func TestDrain(t *testing.T) {
	faults(t)
	for name, start := range map[string]func(*testing.T, string, string, ...string) *sidecar{"HTTP 1": serve, "HTTP 2": serveTLS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, upstream.Options{TokenDelay: 10 * time.Millisecond})
			s := start(t, e.URL, "")
			s.alive(t)
			upload := s.beginUpload(t, name == "HTTP 1")

			var clients sync.WaitGroup
			for i := range 16 {
				clients.Go(func() {
					for n := i; ; n++ { // until the server takes no more
						q := wholeChat(3)
						if n%2 == 0 {
							q = streamChat(60)
						}
						if r := s.send(t, q); r.code == 0 {
							return
						}
					}
				})
			}
			eventually(t, "load", func() bool { return s.ledger.count() > 100 && e.inFlight() >= 12 })
			s.signal(t, syscall.SIGTERM)
			eventually(t, "not ready", func() bool { code, _ := s.ask(t, "/readyz"); return code == http.StatusServiceUnavailable })
			if code, text := s.ask(t, "/healthz"); code != http.StatusOK {
				t.Errorf("healthz while draining: %d %s", code, text)
			}
			upload.finish()
			clients.Wait()
			if code := s.exit(t); code != 0 {
				t.Errorf("exit status %d, want 0", code)
			}
			s.log.until(t, "msg=stopped")
			s.ledger.account(t, e.arrivals(t), true)
			s.ledger.takenIsAnswered(t, e.arrivals(t))
		})
	}
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// takenIsAnswered checks that whatever reached the upstream was answered in full, and that no other status was given.
func (l *ledger) takenIsAnswered(t *testing.T, arrivals []*arrival) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := map[string]bool{}
	for _, a := range arrivals {
		taken[a.ID] = true
	}
	refused := 0
	for _, r := range l.all {
		switch {
		case r.code == http.StatusOK && r.err == nil && (r.ended() || !bytes.Contains(r.request.body, []byte(`"stream":true`))):
		case r.code == 0 && !taken[r.id]:
			refused++
		default:
			t.Errorf("taken, but not answered in full: %v", r)
		}
	}
	t.Logf("%d requests, of which %d were refused when the server had closed", len(l.all), refused)
}

// upload is a request of which only a part was sent yet.
type upload struct {
	request
	conn   io.ReadWriter
	rest   string
	ledger *ledger
}

// beginUpload begins one; nil if it is not wanted.
func (s *sidecar) beginUpload(t *testing.T, wanted bool) *upload {
	t.Helper()
	if !wanted {
		return nil
	}
	q := wholeChat(3)
	conn, half := dial(t, s.addr), len(q.body)/2
	fmt.Fprint(conn, head(q.path, "X-Request-Id: "+q.id, fmt.Sprint("Content-Length: ", len(q.body)))+string(q.body[:half]))
	return &upload{q, conn, string(q.body[half:]), s.ledger}
}

// finish sends the rest and takes the answer.
func (u *upload) finish() {
	if u == nil {
		return
	}
	fmt.Fprint(u.conn, u.rest)
	r := reply{request: u.request}
	res, err := http.ReadResponse(bufio.NewReader(u.conn), nil)
	if r.err = err; err == nil {
		defer res.Body.Close()
		r.code = res.StatusCode
		r.body, r.err = io.ReadAll(res.Body)
	}
	u.ledger.add(r)
}

// TestDrainTooShort: what has not ended in time is cut, so that clients see it, the status is not 0, and the message
// says how many it were.
func TestDrainTooShort(t *testing.T) {
	faults(t)
	for name, start := range map[string]func(*testing.T, string, string, ...string) *sidecar{"HTTP 1": serve, "HTTP 2": serveTLS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const streams = 7
			e := newEngine(t, upstream.Options{TokenDelay: 20 * time.Millisecond})
			s := start(t, e.URL, "", "--drain", "300ms")
			var group, running sync.WaitGroup
			running.Add(streams)
			for range streams {
				once := sync.OnceFunc(running.Done)
				group.Go(func() {
					r := s.sendWatched(t.Context(), streamChat(3000), func([]byte) { once() })
					if r.code != http.StatusOK || r.err == nil || r.ended() {
						t.Errorf("a stream that was cut looks like %v", r)
					}
				})
			}
			running.Wait()
			s.signal(t, syscall.SIGTERM)
			group.Wait()
			if code := s.exit(t); code == 0 {
				t.Error("exit status 0, though answers were cut")
			}
			s.log.until(t, fmt.Sprintf(`ragpilot: .*cut.*300ms: %d\n$`, streams))
			for _, a := range e.arrivals(t) {
				if !a.left {
					t.Errorf("%s went on upstream", a.ID)
				}
			}
			s.ledger.account(t, e.arrivals(t), true)
		})
	}
}

// TestSecondSignal: the second signal ends the process whatever runs.
func TestSecondSignal(t *testing.T) {
	faults(t)
	e := newEngine(t, upstream.Options{TokenDelay: 20 * time.Millisecond})
	s := serve(t, e.URL, "")
	var group sync.WaitGroup
	defer group.Wait()
	begun, cancel := context.WithCancel(t.Context())
	group.Go(func() { s.sendWatched(t.Context(), streamChat(3000), func([]byte) { cancel() }) })
	<-begun.Done()
	s.signal(t, syscall.SIGTERM)
	s.log.until(t, "msg=draining")
	s.signal(t, syscall.SIGTERM)
	if code := s.exit(t); code == 0 {
		t.Error("exit status 0, though an answer was cut")
	}
	if strings.Contains(s.log.String(), "msg=stopped") {
		t.Error("it says that it has stopped in good order")
	}
}
