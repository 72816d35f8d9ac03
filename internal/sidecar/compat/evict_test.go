package compat_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/iotest"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
)

// The engines' plugins recognise by its text the 503 that says that there is no index, after the report was passed on, from that
// of a report that was not read.
func TestEvictSaysWhatWasTaken(t *testing.T) {
	var reported []string
	api := compat.New(compat.Options{OnEvict: func(_ string, ids []string) { reported = append(reported, ids...) }})
	const report = `{"request_ids":["a"]}`
	code, _, taken := ask(t.Context(), t, api, "", "/evict", report)
	check(t, "status without an index", http.StatusServiceUnavailable, code)
	check(t, "passed on", []string{"a"}, reported)

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodPost, "/evict", iotest.ErrReader(context.Canceled)))
	check(t, "status of a body that breaks off", http.StatusServiceUnavailable, w.Code)
	check(t, "passed on", []string{"a"}, reported)

	source, err := os.ReadFile(filepath.Join("..", "..", "..", "engines", "plugin", "ragpilot_plugin", "reporter.py"))
	if err != nil {
		t.Fatal(err)
	}
	mark := regexp.MustCompile(`(?m)^TAKEN = b"(.+)"`).FindSubmatch(source)
	if mark == nil || !bytes.Contains(taken, mark[1]) || bytes.Contains(w.Body.Bytes(), mark[1]) {
		t.Errorf("the plugin looks for %q: taken %s, not taken %s", mark, taken, w.Body)
	}
}
