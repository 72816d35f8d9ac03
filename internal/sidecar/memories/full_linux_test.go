package memories_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/memories"
	"github.com/ragpilot/ragpilot/internal/sidecar/memoryapi"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// served is a folder behind Mem0's API.
type served struct {
	folder *memories.Folder
	mux    *http.ServeMux
	log    strings.Builder
}

func serveFolder(t *testing.T, dir string) *served {
	t.Helper()
	s := &served{folder: open(t, dir, 0), mux: http.NewServeMux()}
	memoryapi.New(memoryapi.Options{
		Store: s.folder.Use, Tenant: func(r *http.Request) string { return r.Header.Get("Tenant") },
		Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	}).SelfHosted(s.mux, "/mem0")
	return s
}

// ask sends a request of a tenant.
func (s *served) ask(t *testing.T, tenant, method, path, body string) (status int, text string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/mem0"+path, strings.NewReader(body))
	r.Header.Set("Tenant", tenant)
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// must sends a request that must be answered with 200.
func (s *served) must(t *testing.T, tenant, method, path, body string) string {
	t.Helper()
	status, text := s.ask(t, tenant, method, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s: %d %s\n%s", method, path, status, text, s.log.String())
	}
	return text
}

// kept returns the IDs of a tenant's memories.
func (s *served) kept(t *testing.T, tenant string) (ids []string) {
	t.Helper()
	var all struct{ Results []struct{ ID string } }
	if err := json.Unmarshal([]byte(s.must(t, tenant, http.MethodGet, "/memories?user_id=ana", "")), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all.Results {
		ids = append(ids, m.ID)
	}
	return ids
}

// add stores a memory of some words.
func (s *served) add(t *testing.T, tenant string, i, words int) (status int, text string) {
	t.Helper()
	body, err := json.Marshal(
		map[string]any{"user_id": "ana", "messages": fmt.Sprint(i, " bees", strings.Repeat(fmt.Sprint(" word", i), words))},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s.ask(t, tenant, http.MethodPost, "/memories", string(body))
}

// fill adds memories until one is refused.
func (s *served) fill(t *testing.T, tenant string, words int) {
	t.Helper()
	for i := 0; ; i++ {
		switch status, text := s.add(t, tenant, i, words); {
		case status == http.StatusOK:
		case status != http.StatusInsufficientStorage || !strings.Contains(text, "full") || strings.Contains(text, "/"):
			t.Fatalf("memory %d: %d %s\n%s", i, status, text, s.log.String())
		case i < 3:
			t.Fatalf("only %d memories fit", i)
		default:
			t.Logf("%d memories of tenant %s fit", i, tenant)
			return
		}
	}
}

// On a full disk nothing is added, everything is read, and memories are deleted one by one, all at once, and with their tenant.
func TestFullDisk(t *testing.T) {
	for _, c := range []struct {
		mib, words   int
		method, path string // by which all of a tenant's goes
	}{
		{10, 100, http.MethodDelete, "/memories?user_id=ana"},
		{24, 1000, http.MethodDelete, "/memories?user_id=ana"}, // more than fits into the reserve at once
		{24, 1000, http.MethodPost, "/reset"},
	} {
		t.Run(fmt.Sprint(c.mib, "MiB,", c.method), func(t *testing.T) {
			if c.mib > 10 {
				testkit.NotUnderRace(t)
				if testing.Short() {
					t.Skip("fills a large disk")
				}
			}
			dir := testkit.SmallDisk(t, c.mib)
			s := serveFolder(t, dir)
			for _, tenant := range []string{"b", "c"} {
				for i := range 5 {
					if status, text := s.add(t, tenant, i, 10); status != http.StatusOK {
						t.Fatal(status, text)
					}
				}
			}
			s.fill(t, "a", c.words)
			free := testkit.FillDisk(t, dir)
			ids := s.kept(t, "a")
			for _, tenant := range []string{"a", "b", "new"} {
				if status, text := s.add(t, tenant, 1_000_000, 1); status != http.StatusInsufficientStorage {
					t.Errorf("tenant %s: %d %s", tenant, status, text)
				}
			}
			if status, text := s.ask(t, "a", http.MethodPut, "/memories/"+ids[0], `{"text":"another"}`); status != http.StatusInsufficientStorage {
				t.Errorf("update: %d %s", status, text)
			}
			s.must(t, "a", http.MethodGet, "/memories/"+ids[0], "")
			s.must(t, "a", http.MethodPost, "/search", `{"query":"bees","user_id":"ana"}`)
			deleted := min(len(ids)/2, 20)
			for _, id := range ids[:deleted] {
				s.must(t, "a", http.MethodDelete, "/memories/"+id, "")
			}
			if left := s.kept(t, "a"); len(left) != len(ids)-deleted {
				t.Errorf("%d of %d memories are left after %d were deleted", len(left), len(ids), deleted)
			}
			// A server that starts on the full disk.
			if err := s.folder.Close(); err != nil {
				t.Fatal(err)
			}
			s = serveFolder(t, dir)
			if left := s.kept(t, "b"); len(left) != 5 {
				t.Errorf("%d memories of tenant b after a restart", len(left))
			}
			s.must(t, "b", http.MethodDelete, "/memories?user_id=ana", "")
			s.must(t, "a", c.method, c.path, "")
			if left := s.kept(t, "a"); len(left) != 0 {
				t.Errorf("%d memories are left after all were deleted", len(left))
			}
			if known, err := s.folder.Forget(t.Context(), "c"); err != nil || !known {
				t.Errorf("forget: %v, %v", known, err)
			}
			free()
			if status, text := s.add(t, "a", 1, 1); status != http.StatusOK {
				t.Errorf("with room again: %d %s\n%s", status, text, s.log.String())
			}
		})
	}
}

// A server that starts where even the reserve does not fit reads, deletes with what there is, and adds when there is room.
func TestStartWithoutRoomForTheReserve(t *testing.T) {
	dir := testkit.SmallDisk(t, 16)
	s := serveFolder(t, dir)
	for i := range 4 {
		if status, text := s.add(t, "a", i, 10); status != http.StatusOK {
			t.Fatal(status, text)
		}
	}
	if err := s.folder.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "reserve"), 2<<20); err != nil {
		t.Fatal(err)
	}
	free := testkit.FillDisk(t, dir)
	s = serveFolder(t, dir)
	ids := s.kept(t, "a")
	if status, text := s.add(t, "a", 4, 1); len(ids) != 4 || status != http.StatusInsufficientStorage || !strings.Contains(text, "full") {
		t.Errorf("%d memories; add: %d %s", len(ids), status, text)
	}
	s.must(t, "a", http.MethodDelete, "/memories/"+ids[0], "")
	free()
	if status, text := s.add(t, "a", 4, 1); status != http.StatusOK || len(s.kept(t, "a")) != 4 {
		t.Errorf("with room again: %d %s", status, text)
	}
}
