package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/memorytest"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

func TestConformance(t *testing.T) {
	memorytest.RunBackend(t, func(t *testing.T) memory.Backend {
		backend, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "memories.db"), sqlite.Options{Relaxed: true})
		if err != nil {
			t.Fatal(err)
		}
		return backend
	})
}

// open opens a store; the test closes it.
func open(t testing.TB, path string) *memory.Local {
	t.Helper()
	backend, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func said(texts ...string) []memory.Message {
	var messages []memory.Message
	for _, text := range texts {
		messages = append(messages, memory.Message{Role: memory.User, Content: text})
	}
	return messages
}

func mustAdd(t testing.TB, store memory.Store, scope memory.Scope, texts ...string) []memory.Change {
	t.Helper()
	return testkit.Must(store.Add(t.Context(), scope, said(texts...), memory.AddOptions{}))(t)
}

func TestReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space?and#more%.db")
	store := open(t, path)
	mustAdd(t, store, memory.Scope{User: "ana"}, "Likes tea.", "Lives in Oslo.")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = open(t, path)
	defer store.Close()
	hits, err := store.Search(t.Context(), memory.Scope{User: "ana"}, "tea", 1, memory.SearchOptions{})
	if err != nil || len(hits) != 1 || hits[0].Memory.Text != "Likes tea." {
		t.Errorf("after reopening: %+v, %v", hits, err)
	}
}

// Two processes with one file are two backends with one file: their changes are all there.
func TestTwoBackendsOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memories.db")
	a, b := open(t, path), open(t, path)
	defer a.Close()
	defer b.Close()
	done := make(chan error, 2)
	for i, store := range []*memory.Local{a, b} {
		go func() {
			var err error
			for j := range 20 {
				text := strings.Repeat("x", 1+i) + strings.Repeat("y", j)
				if _, err = store.Add(t.Context(), memory.Scope{User: "ana"}, said(text, "the same"), memory.AddOptions{}); err != nil {
					break
				}
			}
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	all, err := a.GetAll(t.Context(), memory.Scope{User: "ana"}, memory.ListOptions{})
	if err != nil || len(all) != 41 {
		t.Errorf("%d memories, %v; want 41", len(all), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"no path": "", "memory": ":memory:", "no folder": filepath.Join(dir, "no", "file"), "another file": text,
	} {
		if backend, err := sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil {
			backend.Close()
			t.Errorf("%s: opened", name)
		}
	}
	if raw, err := os.ReadFile(text); err != nil || !strings.HasPrefix(string(raw), "not a database") {
		t.Errorf("a file that is not ours was changed: %v", err)
	}
}

func TestOnlyOwnerCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no such permissions")
	}
	path := filepath.Join(t.TempDir(), "memories.db")
	store := open(t, path)
	defer store.Close()
	mustAdd(t, store, memory.Scope{User: "ana"}, "Likes tea.")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", filepath.Base(path)+suffix, mode)
		}
	}
}
