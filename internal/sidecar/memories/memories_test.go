package memories_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/sidecar/memories"
	"github.com/ragpilot/ragpilot/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ana = memory.Scope{User: "ana"}

func open(t *testing.T, dir string, most int) *memories.Folder {
	t.Helper()
	f, err := memories.Open(dir, memories.Options{Embedder: memory.Lexical, Open: most})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func remember(t *testing.T, f *memories.Folder, tenant, text string) {
	t.Helper()
	s, release, err := f.Use(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := s.Add(t.Context(), ana, []memory.Message{{Role: memory.User, Content: text}}, memory.AddOptions{}); err != nil {
		t.Error(err)
	}
}

func count(t *testing.T, f *memories.Folder, tenant string) int {
	t.Helper()
	s, release, err := f.Use(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	all, err := s.GetAll(t.Context(), ana, memory.ListOptions{})
	if err != nil {
		t.Error(err)
	}
	return len(all)
}

// Each tenant has a file; with fewer open at once than there are, all is kept, and it is there after a restart.
func TestTenants(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	f := open(t, dir, 2)
	for i := range 5 {
		for n := range i {
			remember(t, f, fmt.Sprint("tenant/../", i), fmt.Sprint("fact ", n))
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Use(t.Context(), "x"); !errors.Is(err, memories.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	f = open(t, dir, 0)
	for i := range 5 {
		if n := count(t, f, fmt.Sprint("tenant/../", i)); n != i {
			t.Errorf("tenant %d has %d memories", i, n)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil || len(files) != 5 {
		t.Errorf("%v, %v", files, err)
	}
}

// A store in use is not closed for another; a tenant that cannot have one gets an error.
func TestInUse(t *testing.T) {
	f := open(t, t.TempDir(), 1)
	s, release, err := f.Use(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Use(t.Context(), "b"); !errors.Is(err, memories.ErrBusy) {
		t.Errorf("b: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetAll(t.Context(), ana, memory.ListOptions{}); err != nil {
		t.Errorf("closed under its user: %v", err)
	}
	release()
	release() // harmless
	if _, err := s.GetAll(t.Context(), ana, memory.ListOptions{}); err == nil {
		t.Error("still open when all have left")
	}
}

func TestManyAtOnce(t *testing.T) {
	f := open(t, t.TempDir(), 3)
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			s, release, err := f.Use(t.Context(), fmt.Sprint(i%6))
			if errors.Is(err, memories.ErrBusy) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if _, err := s.Add(t.Context(), ana, []memory.Message{{Role: memory.User, Content: fmt.Sprint("fact ", i)}},
				memory.AddOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestForget(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir, 0)
	remember(t, f, "a", "something of a's")
	remember(t, f, "b", "something of b's")
	if known, err := f.Forget(t.Context(), "c"); known || err != nil {
		t.Errorf("c: %v, %v", known, err)
	}
	if known, err := f.Forget(t.Context(), "a"); !known || err != nil {
		t.Errorf("a: %v, %v", known, err)
	}
	if a, b := count(t, f, "a"), count(t, f, "b"); a != 0 || b != 1 {
		t.Errorf("a has %d, b has %d", a, b)
	}
}

// Stores share one bound for what searches need, and one that is closed takes nothing of it.
func TestIndexesAreShared(t *testing.T) {
	indexes := memory.NewIndexes(0)
	f, err := memories.Open(t.TempDir(), memories.Options{Embedder: memory.Lexical, Open: 2, Indexes: indexes})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	held := map[string]int64{}
	for _, tenant := range []string{"a", "b"} {
		remember(t, f, tenant, "Lives in house "+tenant)
		before := indexes.Bytes()
		s, release, err := f.Use(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		hits, err := s.Search(t.Context(), ana, "house", 5, memory.SearchOptions{})
		release()
		if err != nil || len(hits) != 1 || hits[0].Memory.Text != "Lives in house "+tenant {
			t.Errorf("%s finds %+v, %v", tenant, hits, err)
		}
		if held[tenant] = indexes.Bytes() - before; held[tenant] <= 0 {
			t.Errorf("%s: %d bytes more than before the search", tenant, held[tenant])
		}
	}
	remember(t, f, "c", "Closes the store of a.")
	if n := indexes.Bytes(); n != held["b"] {
		t.Errorf("%d bytes after a store was closed, want %d", n, held["b"])
	}
	if err := f.Close(); err != nil || indexes.Bytes() != 0 {
		t.Errorf("%d bytes after all were closed, %v", indexes.Bytes(), err)
	}
}

// A file that is none is an error, and one that has been mended opens.
func TestBrokenFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, memories.FileOf("a"))
	if err := os.WriteFile(path, []byte("this is no database, and long enough to be seen as none"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir, 0)
	if _, _, err := f.Use(t.Context(), "a"); err == nil {
		t.Fatal("opened")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	remember(t, f, "a", "x")
}
