package bleve_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/retriever/bleve"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// write makes files below dir, of paths and contents in turn; an empty content removes the file.
func write(t testing.TB, dir string, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		path := filepath.Join(dir, filepath.FromSlash(pairs[i]))
		if pairs[i+1] == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(pairs[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// reopen opens the folder and sees to it that the index is closed.
func reopen(t testing.TB, opts bleve.Options) *bleve.Index {
	t.Helper()
	x, err := bleve.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func closed(t testing.TB, x *bleve.Index) {
	t.Helper()
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestIndexFolderFollowsFiles: over several runs only what changed is indexed, and the index is then the same, scores
// included, as one that is made anew.
func TestIndexFolderFollowsFiles(t *testing.T) {
	dir := t.TempDir()
	opts := bleve.Options{Dir: dir, IndexDir: filepath.Join(t.TempDir(), "index")}
	long := strings.Repeat("A paragraph about zebras.\n\n", 80)
	for i, step := range []struct {
		files []string
		want  bleve.Changes
	}{
		{[]string{"a.md", "zebra one", "b/c.md", long, "d.txt", "a lion"}, bleve.Changes{Added: 3}},
		{nil, bleve.Changes{Unchanged: 3}},
		{[]string{"a.md", "# Now\nzebra two, with more words"}, bleve.Changes{Changed: 1, Unchanged: 2}},
		{[]string{"b/c.md", "short, one zebra"}, bleve.Changes{Changed: 1, Unchanged: 2}}, // fewer blocks than before
		{[]string{"e.md", "zebra"}, bleve.Changes{Added: 1, Unchanged: 3}},
		{[]string{"d.txt", "", "b/c.md", ""}, bleve.Changes{Removed: 2, Unchanged: 2}},
		{[]string{"e.md", "binary\x00"}, bleve.Changes{Removed: 1, Unchanged: 1}},
	} {
		write(t, dir, step.files...)
		x := reopen(t, opts)
		if diff := cmp.Diff(step.want, x.Changes()); diff != "" {
			t.Errorf("step %d: changes: -want +got:\n%s", i, diff)
		}
		fresh := open(t, os.DirFS(dir), bleve.Options{})
		for _, q := range []string{"zebra", "zebra two paragraph", "lion"} {
			if diff := cmp.Diff(find(t, fresh, q, 200), find(t, x, q, 200)); diff != "" {
				t.Errorf("step %d: %q: -made anew +kept:\n%s", i, q, diff)
			}
		}
		if x.Len() != fresh.Len() || len(x.Skipped()) != len(fresh.Skipped()) {
			t.Errorf("step %d: %d blocks and %d skipped, want %d and %d", i, x.Len(), len(x.Skipped()), fresh.Len(), len(fresh.Skipped()))
		}
		closed(t, x)
	}
}

func TestRefresh(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.md", "zebra", "b.md", "lion")
	x := reopen(t, bleve.Options{Dir: dir})
	write(t, dir, "a.md", "tiger", "b.md", "", "c.md", "tiger too")
	got, err := x.Refresh(t.Context())
	if err != nil || got != (bleve.Changes{Added: 1, Changed: 1, Removed: 1}) {
		t.Errorf("Refresh = %+v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"a.md#0", "c.md#0"}, ids(find(t, x, "tiger zebra lion", 9))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if x.Len() != 2 {
		t.Errorf("Len = %d, want 2", x.Len())
	}

	write(t, dir, "a.md", "", "c.md", "")
	if _, err := x.Refresh(t.Context()); !errors.Is(err, bleve.ErrNoBlocks) {
		t.Errorf("a folder that is suddenly empty: %v, want ErrNoBlocks", err)
	}
	if len(find(t, x, "tiger", 9)) != 2 {
		t.Error("a folder that is suddenly empty emptied the index")
	}
	write(t, dir, "a.md", "tiger")
	stop := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, err := x.Refresh(ctx); !errors.Is(err, stop) {
		t.Errorf("canceled: %v, want its cause", err)
	}
	closed(t, x)
	if _, err := x.Refresh(t.Context()); !errors.Is(err, bleve.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

// TestBuildThatStopsGoesOn: what a canceled build has indexed is not indexed again.
func TestBuildThatStopsGoesOn(t *testing.T) {
	dir := t.TempDir()
	for i := range 1200 {
		write(t, dir, fmt.Sprintf("%04d.md", i), fmt.Sprintf("zebra %d", i))
	}
	opts := bleve.Options{Dir: dir, IndexDir: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	opts.Progress = func(p bleve.Progress) {
		if p.Done == 800 {
			cancel()
		}
	}
	if _, err := bleve.Open(ctx, opts); !errors.Is(err, context.Canceled) {
		t.Fatalf("canceled: %v", err)
	}
	opts.Progress = nil
	x := reopen(t, opts)
	if got := x.Changes(); got.Unchanged != 500 || got.Added != 700 || x.Len() != 1200 {
		t.Errorf("changes %+v and %d blocks, want one batch of 500 unchanged and 1200 blocks", got, x.Len())
	}
}

func TestOtherOptionsRebuild(t *testing.T) {
	dir, index := t.TempDir(), t.TempDir()
	write(t, dir, "a.md", strings.Repeat("A paragraph about running zebras.\n\n", 50))
	x := reopen(t, bleve.Options{Dir: dir, IndexDir: index})
	few := x.Len()
	closed(t, x)
	x = reopen(t, bleve.Options{Dir: dir, IndexDir: index, TargetBytes: 100, Analyzer: "standard"})
	if got := x.Changes(); !got.Rebuilt || got.Added != 1 || x.Len() <= few {
		t.Errorf("changes %+v, %d blocks after %d; want a rebuild into more blocks", got, x.Len(), few)
	}
	if got := find(t, x, "run", 1); len(got) != 0 {
		t.Errorf("the standard analyzer found %v, which only a stem matches", got)
	}
	entries, err := os.ReadDir(index)
	if err != nil || len(entries) != 2 {
		t.Errorf("the index folder holds %v, %v; want the mark and one index", entries, err)
	}
}

func TestIndexFolderErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.md", "zebra")
	t.Run("in use", func(t *testing.T) {
		opts := bleve.Options{Dir: dir, IndexDir: t.TempDir()}
		reopen(t, opts)
		if _, err := bleve.Open(t.Context(), opts); !errors.Is(err, bleve.ErrLocked) {
			t.Errorf("err = %v, want ErrLocked", err)
		}
	})
	t.Run("other things in it", func(t *testing.T) {
		_, err := bleve.Open(t.Context(), bleve.Options{Dir: dir, IndexDir: dir})
		if err == nil || !strings.Contains(err.Error(), "a.md") {
			t.Errorf("err = %v, want it to name a.md", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "a.md")); err != nil {
			t.Error(err)
		}
	})
	t.Run("documents of a store", func(t *testing.T) {
		index := t.TempDir()
		s, err := bleve.OpenStore(bleve.StoreOptions{IndexDir: index})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Upsert(t.Context(), []store.Document{{ID: "a", Text: "zebra"}}), s.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := bleve.OpenStore(bleve.StoreOptions{IndexDir: index, Analyzer: "standard"}); err == nil ||
			!strings.Contains(err.Error(), "standard") {
			t.Errorf("err = %v, want it to name the analyzer", err)
		}
		s, err = bleve.OpenStore(bleve.StoreOptions{IndexDir: index})
		if err != nil {
			t.Fatal(err)
		}
		if s.Len() != 1 {
			t.Errorf("Len = %d, want 1", s.Len())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestDamagedIndexFolder damages each file in several ways: Open must say so, or give right answers.
func TestDamagedIndexFolder(t *testing.T) {
	dir, whole := t.TempDir(), t.TempDir()
	for i := range 40 {
		write(t, dir, fmt.Sprintf("%d.md", i), fmt.Sprintf("zebra number%d", i))
	}
	x := reopen(t, bleve.Options{Dir: dir, IndexDir: whole})
	want := find(t, x, "zebra number7", 40)
	closed(t, x)

	damages := map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"emptied": func([]byte) []byte { return nil },
		"flipped": func(b []byte) []byte { b[len(b)/2] ^= 0xff; return b },
		"zeros":   func(b []byte) []byte { clear(b); return b },
	}
	noticed := 0
	err := filepath.WalkDir(whole, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(whole, path)
		if err != nil {
			return err
		}
		for name, damage := range damages {
			index := t.TempDir()
			if err := os.CopyFS(index, os.DirFS(whole)); err != nil {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(index, rel), damage(raw), 0o600); err != nil {
				return err
			}
			x, err := bleve.Open(t.Context(), bleve.Options{Dir: dir, IndexDir: index})
			if err != nil {
				noticed++
				if !errors.Is(err, bleve.ErrCorrupt) || !strings.Contains(err.Error(), index) {
					t.Errorf("%s %s: error %v, want ErrCorrupt with the folder", rel, name, err)
				}
				continue
			}
			if diff := cmp.Diff(want, find(t, x, "zebra number7", 40)); diff != "" {
				t.Errorf("%s %s: not noticed: -want +got:\n%s", rel, name, diff)
			}
			closed(t, x)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d damages were noticed", noticed)
	if noticed < 8 {
		t.Errorf("%d damages were noticed, want at least those of the mark and of a segment", noticed)
	}
}

// An ID that is given twice to Delete is one document: the totals, on which all scores depend, are those of what is left.
func TestDeleteCountsAnIDOnce(t *testing.T) {
	docs := []store.Document{{ID: "a", Text: "bees and honey"}, {ID: "b", Text: "bees"}, {ID: "c", Text: "a bear likes honey"}}
	search := func(ids ...string) ([]store.Hit, int) {
		s, err := bleve.OpenStore(bleve.StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Upsert(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), "", ids...); err != nil {
			t.Fatal(err)
		}
		hits, err := s.Search(t.Context(), store.Query{Text: "honey", K: 3})
		if err != nil {
			t.Fatal(err)
		}
		return hits, s.Len()
	}
	once, _ := search("a", "b")
	twice, left := search("a", "a", "not there", "b", "a")
	if diff := cmp.Diff(once, twice); diff != "" || left != 1 || len(once) != 1 {
		t.Errorf("%d documents are left, want 1; hits (-once +twice):\n%s", left, diff)
	}
}
