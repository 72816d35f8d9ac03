//go:build linux

package sidecar_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/serve"
)

// TestOpenStoresAreBounded: however many tenants ask for memories, few files are open, and none of what was stored is lost.
func TestOpenStoresAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := startWhole(t, func(c *serve.Config) {
		c.Memory.Dir, c.Memory.Embedder, c.TrustTenantHeader, c.Limits.MemoryBytes = dir, "lexical", "X-Team", 16<<20
	})
	ask := func(method, tenant, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+"/memories?user_id=u", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Team", tenant)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s of %s: %d %s %v", method, tenant, resp.StatusCode, text, err)
		}
		return string(text)
	}
	const tenants = 40
	for i := range tenants {
		ask(http.MethodPost, fmt.Sprint("t", i), fmt.Sprintf(`{"user_id":"u","messages":[{"role":"user","content":"I live in house %d"}]}`, i))
	}
	for i := range tenants {
		if got := ask(http.MethodGet, fmt.Sprint("t", i), ""); !strings.Contains(got, fmt.Sprintf("house %d", i)) {
			t.Errorf("tenant %d has %s", i, got)
		}
	}
	open := map[string]bool{}
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if target, err := os.Readlink(name); err == nil && strings.HasPrefix(target, dir) && strings.HasSuffix(target, ".db") {
			open[target] = true
		}
	}
	if len(open) == 0 || len(open) > 5 { // an eighth of 16 MiB, at 400 KiB each
		t.Errorf("%d stores are open, want 1 to 5", len(open))
	}
}
