//go:build linux

package faulttest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// engine is an upstream that keeps what it got and what it answered.
type engine struct {
	*httptest.Server
	recorder
}

// recorder keeps what passes a handler.
type recorder struct {
	next   http.Handler
	record io.Writer // of arrivals as lines of JSON; nil: none

	mu      sync.Mutex
	all     []*arrival // guarded by mu
	running int        // guarded by mu
}

// arrival is one request as the upstream got it. What is not exported is set when it has ended.
type arrival struct {
	ID, Path string
	Body     []byte
	header   http.Header
	broken   error // the body's end
	answer   []byte
	left     bool // the context ended before the answer did
}

// newEngine starts the simulated engine with a recorder in front. It idles for a moment only, so that both ends of a
// connection can be seen to end.
func newEngine(t *testing.T, o upstream.Options) *engine {
	t.Helper()
	return newScripted(t, upstream.New(o))
}

// newScripted is newEngine with answers of the test's own.
func newScripted(t *testing.T, next http.Handler) *engine {
	t.Helper()
	e := &engine{recorder: recorder{next: next}}
	e.Server = httptest.NewServer(&e.recorder)
	t.Cleanup(func() {
		e.CloseClientConnections()
		e.Close()
	})
	return e
}

// hangUp closes connections, if no request runs.
func (e *engine) hangUp() {
	if e.inFlight() == 0 {
		e.CloseClientConnections()
	}
}

func (r *recorder) inFlight() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// arrivals returns what has arrived so far and has ended.
func (r *recorder) arrivals(t *testing.T) []*arrival {
	t.Helper()
	eventually(t, "end of all requests upstream", func() bool { return r.inFlight() == 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == "/props" { // the sidecar's own question, whether this is a llama-server
		r.next.ServeHTTP(w, req)
		return
	}
	r.mu.Lock()
	r.running++
	r.mu.Unlock()
	a := &arrival{ID: req.Header.Get("X-Request-Id"), Path: req.URL.Path, header: req.Header}
	a.Body, a.broken = io.ReadAll(req.Body)
	r.mu.Lock()
	r.all = append(r.all, a)
	if r.record != nil && a.broken == nil {
		_ = json.NewEncoder(r.record).Encode(a) // a test that misses a line will say so
	}
	r.mu.Unlock()
	said := &tee{ResponseWriter: w}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		a.answer, a.left = said.text.Bytes(), req.Context().Err() != nil
		r.running--
	}()
	if a.broken != nil {
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(a.Body))
	r.next.ServeHTTP(said, req)
}

// tee keeps a copy of an answer.
type tee struct {
	http.ResponseWriter
	text bytes.Buffer
}

func (w *tee) Write(p []byte) (int, error) {
	w.text.Write(p)
	return w.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (w *tee) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// runEngine is what this test's program does as an upstream: it serves the simulated engine at the address args[0], with
// args[1] between tokens, and records what it gets, until it is killed.
func runEngine(record string, args []string) error {
	delay, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	file, err := os.OpenFile(record, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())
	server := &http.Server{
		Handler:           &recorder{next: upstream.New(upstream.Options{TokenDelay: delay}), record: file},
		ReadHeaderTimeout: time.Minute,
	}
	return server.Serve(listener)
}

// launchEngine starts a process that can be killed, and waits until it listens.
func launchEngine(t *testing.T, record, addr, delay string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, []string{engineRecord + "=" + record}, self, addr, delay)
	p.log.until(t, `listening on \S+\n`)
	return p
}

// recorded reads what engines have written to a file.
func recorded(t *testing.T, record string) (all []*arrival) {
	t.Helper()
	file, err := os.Open(record)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := json.NewDecoder(file); ; {
		a := new(arrival)
		switch err := lines.Decode(a); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, a)
	}
}
