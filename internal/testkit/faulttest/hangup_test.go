//go:build linux

package faulttest_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// TestHangup: a configuration that is wrong changes nothing, one that is right takes effect at once, and neither is felt by
// answers that run.
func TestHangup(t *testing.T) {
	faults(t)
	e := newEngine(t, upstream.Options{TokenDelay: 5 * time.Millisecond})
	settings := func(key string) string { return fmt.Sprintf("keys: [{tenant: a, key: %s}]\n", key) }
	s := serve(t, e.URL, settings("first"))
	with := func(key string, tokens int) reply {
		q := streamChat(tokens)
		q.header = []string{"X-Api-Key", key}
		return s.send(t, q)
	}
	want := func(when, key string, code int) {
		t.Helper()
		if r := with(key, 2); r.code != code || r.err != nil {
			t.Errorf("%s, with the key %q: %v", when, key, r)
		}
	}
	want("at first", "first", http.StatusOK)
	want("at first", "second", http.StatusUnauthorized)

	var streams sync.WaitGroup
	for range 8 {
		streams.Go(func() {
			if r := with("first", 400); r.code != http.StatusOK || r.err != nil || !r.ended() {
				t.Errorf("a stream that ran meanwhile: %v", r)
			}
		})
	}
	eventually(t, "streams", func() bool { return e.inFlight() == 8 })
	missing := filepath.Join(t.TempDir(), "missing")
	for name, text := range map[string]string{
		"no YAML":        "keys: [{{",
		"unknown field":  settings("second") + "kyes: []\n",
		"wrong value":    settings("second") + "hold_out: 7\n",
		"missing file":   "keys: [{file: " + missing + "}]\n",
		"same key twice": "keys: [{tenant: a, key: second}, {tenant: b, key: second}]\n",
		"not UTF-8":      "\xff\xfe\x00",
		"another type":   "- a list\n",
	} {
		s.rewrite(t, text)
		s.hangup(t, "level=ERROR msg=\"configuration not reloaded")
		want(name, "first", http.StatusOK)
		want(name, "second", http.StatusUnauthorized)
	}
	if err := os.Remove(s.settings); err != nil {
		t.Fatal(err)
	}
	s.hangup(t, "level=ERROR msg=\"configuration not reloaded")
	want("without the file", "first", http.StatusOK)

	s.rewrite(t, settings("second"))
	s.hangup(t, `configuration reloaded" changed=\[keys\]`)
	want("with a new key", "first", http.StatusUnauthorized)
	want("with a new key", "second", http.StatusOK)
	for range 100 {
		s.signal(t, syscall.SIGHUP)
	}
	want("after many signals", "second", http.StatusOK)
	streams.Wait()

	s.rewrite(t, "")
	s.hangup(t, `configuration reloaded" changed=\[keys\]`)
	before := s.atRest(t, e) // which has no key
	s.recovered(t, e, before)
	s.ledger.account(t, e.arrivals(t), true)
}

// hangup sends the signal and waits for one more line in the log.
func (s *sidecar) hangup(t *testing.T, line string) {
	t.Helper()
	already := s.log.count(line)
	s.signal(t, syscall.SIGHUP)
	eventually(t, "line "+line, func() bool { return s.log.count(line) > already })
}
