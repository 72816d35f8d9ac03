package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/server"
)

// FuzzPaths: a path that is let in has no dot segment in any decoding, and is the same when it is let in again.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{
		"/v1/models", "//a//b/", "/%2e%2e/x", "/a%2f..%2fb", "/a%252e%252e", "/..;x", `/a\..`, "/%", "/%zz",
		"/a%00b", "/org%2Fname", "/%6d%7E%41/", "", "*", "/%25", "/%e2%80%ae",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		path, ok := server.Straight(raw)
		if !ok {
			return
		}
		again, ok := server.Straight(path)
		if !ok || again != path {
			t.Errorf("%q became %q, and that %q, %v", raw, path, again, ok)
		}
		plain := strings.NewReplacer("%2f", "/", "%2F", "/", "%2e", ".", "%2E", ".", "%5c", "\\", "%5C", "\\").Replace(path)
		for range 3 {
			plain = strings.ReplaceAll(plain, "%25", "%")
		}
		for part := range strings.SplitSeq(plain, "/") {
			if part == ".." || part == "." || strings.Contains(part, "\\") {
				t.Errorf("%q let in as %q", raw, path)
			}
		}
	})
}

// TestPathsAreStraight: handlers see simple paths; others are refused before any key is looked at.
func TestPathsAreStraight(t *testing.T) {
	r := start(t, onFreePorts(), func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.URL.EscapedPath())) })
	for path, want := range map[string]string{
		"/a//b///c": "/a/b/c", "/org%2Fname": "/org%2Fname", "/%6dodels/%7e": "/models/~",
		"/a%20b/": "/a%20b/", "/": "/",
	} {
		if got := r.get(t, r.url+path); got.code != http.StatusOK || got.body != want {
			t.Errorf("%s: %d %s, want %s", path, got.code, got.body, want)
		}
	}
	for _, path := range []string{"/a/%2e%2e/b", "/a%2f..", "/%252e%252e/", "/a%5cb", "/a%0ab", "/..;/x"} {
		if got := r.get(t, r.url+path); got.code != http.StatusBadRequest || !strings.Contains(got.body, "dot segments") {
			t.Errorf("%s: %d %s, want 400", path, got.code, got.body)
		}
	}
}
