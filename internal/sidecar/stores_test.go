//go:build linux

package sidecar_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// TestOpenStoresAreBounded: however many tenants ask for memories, few files are open, and none of what was stored is lost.
func TestOpenStoresAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := startWhole(t, func(c *settings.Config) {
		c.Memory.Dir, c.Memory.Embedder, c.TrustTenantHeader, c.Limits.MemoryBytes = dir, "lexical", "X-Team", 16<<20
	})
	ask := func(method, tenant, body string) string {
		t.Helper()
		r := request(t, method, s.url+"/memories?user_id=u", body, "X-Team", tenant)
		if r.code != http.StatusOK {
			t.Fatalf("%s of %s: %d %s", method, tenant, r.code, r.text)
		}
		return r.text
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

// TestMemoryIndexesAreBounded: a tenant that searches ever more scopes takes no more than the share of what searches need, and the
// metric has what they take.
func TestMemoryIndexesAreBounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	l := newTenants(t, sidecar.Options{Registry: reg}, func(c *settings.Config) {
		c.Memory.Dir, c.Memory.Embedder, c.Limits.MemoryBytes = t.TempDir(), "lexical", 16<<20
	})
	held := func() float64 { return metric(t, reg, "ragpilot_memory_bytes", "memory_indexes") }
	if n := held(); n != 0 {
		t.Errorf("%v bytes before the first search", n)
	}
	search := func(run int) {
		t.Helper()
		body := fmt.Sprintf(`{"query":"house","user_id":"u","run_id":"%s%d"}`, strings.Repeat("r", 500), run)
		do(t, http.MethodPost, l.front.URL+"/mem0/search", "a", body)
	}
	search(0)
	one := held()
	if one <= 500 {
		t.Errorf("%v bytes after a search", one)
	}
	const searches = 1000
	for i := range searches {
		search(1 + i)
	}
	if n := held(); n < 10*one || n > 4<<20 || n > one*searches/2 {
		t.Errorf("%v bytes after %d searches, %v after one; want at most a quarter of 16 MiB, and that some had to go", n, 1+searches, one)
	}
}
