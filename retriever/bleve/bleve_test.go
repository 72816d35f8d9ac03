package bleve_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// files makes a file system of paths and contents in turn.
func files(pairs ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fsys[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fsys
}

func open(t testing.TB, fsys fs.FS, opts bleve.Options) *bleve.Index {
	t.Helper()
	return testkit.Opened[*bleve.Index](t)(bleve.New(fsys, opts))
}

func find(t testing.TB, x *bleve.Index, query string, k int) []contextpilot.Block {
	t.Helper()
	return testkit.Must(x.Search(t.Context(), query, k))(t)
}

func ids(blocks []contextpilot.Block) []string {
	return testkit.Map(blocks, func(b contextpilot.Block) string { return b.ID })
}

func TestOpenFolder(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret.md")
	for name, text := range map[string]string{
		filepath.Join(dir, "guide", "Install.MD"): "# Guide\n\n## Install\r\n\r\nCopy the zebra.\r\n",
		filepath.Join(dir, "notes.txt"):           "A zebra in notes.\n\n# not a heading",
		filepath.Join(dir, "zebra.go"):            "zebra",
		filepath.Join(dir, ".git", "zebra.txt"):   "zebra",
		outside:                                   "zebra",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.md")); err != nil {
		t.Logf("links are not tested here: %v", err)
	}
	x, err := bleve.Open(t.Context(), bleve.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close() }()

	got := find(t, x, "zebra", 10)
	want := []contextpilot.Block{
		{ID: "guide/Install.MD#0", Text: "Guide > Install\nCopy the zebra."},
		{ID: "notes.txt#0", Text: "A zebra in notes.\n\n# not a heading"},
	}
	for i := range got {
		if got[i].Score <= 0 {
			t.Errorf("%s: score %v, want above 0", got[i].ID, got[i].Score)
		}
		got[i].Score = 0
	}
	if diff := cmp.Diff(want, got, cmp.Transformer("byID", func(b []contextpilot.Block) map[string]contextpilot.Block {
		m := map[string]contextpilot.Block{}
		for _, b := range b {
			m[b.ID] = b
		}
		return m
	})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if x.Len() != 2 {
		t.Errorf("Len = %d, want 2", x.Len())
	}
}

func TestOptionsSelectFiles(t *testing.T) {
	fsys := files("a.md", "word", "b.rst", "word", "old/c.md", "word", "new/d.md", "word", "new/E.RST", "word")
	for _, tc := range []struct {
		name string
		opts bleve.Options
		want []string
	}{
		{"default", bleve.Options{}, []string{"a.md#0", "new/d.md#0", "old/c.md#0"}},
		{"by name", bleve.Options{Include: []string{"*.rst"}}, []string{"b.rst#0", "new/E.RST#0"}},
		{"by path", bleve.Options{Include: []string{"new/*"}}, []string{"new/E.RST#0", "new/d.md#0"}},
		{"excluded", bleve.Options{Exclude: []string{"old/*", "A.md"}}, []string{"new/d.md#0"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := open(t, fsys, tc.opts)
			if diff := cmp.Diff(tc.want, ids(find(t, x, "word", 9))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSkippedFilesAreNamed(t *testing.T) {
	fsys := files("a.txt", "word", "big.txt", strings.Repeat("word ", 50), "binary.txt", "wo\x00rd", "empty.md", "", "latin1.txt",
		"caf\xe9 word")
	x := open(t, fsys, bleve.Options{MaxFileBytes: 100})
	got := x.Skipped()
	if len(got) != 2 || got[0].Path != "big.txt" || !errors.Is(got[0].Err, bleve.ErrTooLarge) ||
		got[1].Path != "binary.txt" || !errors.Is(got[1].Err, bleve.ErrBinary) {
		t.Errorf("Skipped = %v, want big.txt (too large) and binary.txt (binary)", got)
	}
	if blocks := find(t, x, "caf\uFFFD", 1); len(blocks) != 1 || blocks[0].Text != "caf\uFFFD word" {
		t.Errorf("invalid UTF-8: got %+v, want it replaced", blocks)
	}
}

func TestErrorsNameFieldAndValue(t *testing.T) {
	one := files("a.md", "word")
	missing := filepath.Join(t.TempDir(), "nowhere")
	canceled, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped by the test")
	cancel(stop)
	closed, err := bleve.New(one, bleve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(closed.Close(), closed.Close()); err != nil {
		t.Errorf("Close twice: %v", err)
	}
	x := open(t, one, bleve.Options{})
	newErr := func(fsys fs.FS, opts bleve.Options) error { _, err := bleve.New(fsys, opts); return err }
	openErr := func(ctx context.Context, dir string) error {
		_, err := bleve.Open(ctx, bleve.Options{Dir: dir})
		return err
	}
	searchErr := func(x *bleve.Index, ctx context.Context, query string, k int) error {
		_, err := x.Search(ctx, query, k)
		return err
	}
	for _, tc := range []struct {
		name string
		err  error
		is   error
		text string
	}{
		{"no folder", openErr(t.Context(), ""), nil, "Options.Dir is empty"},
		{"missing folder", openErr(t.Context(), missing), fs.ErrNotExist, missing},
		{"empty folder", openErr(t.Context(), t.TempDir()), bleve.ErrNoBlocks, `"*.md"`},
		{"canceled", openErr(canceled, t.TempDir()), stop, "index folder"},
		{"only skipped files", newErr(files("a.md", "\x00"), bleve.Options{}), bleve.ErrBinary, "a.md"},
		{"only empty files", newErr(files("a.md", "\n"), bleve.Options{}), bleve.ErrNoBlocks, ""},
		{"no file system", newErr(nil, bleve.Options{}), nil, "fsys is nil"},
		{"dir for New", newErr(one, bleve.Options{Dir: "x"}), nil, `Options.Dir = "x"`},
		{"target", newErr(one, bleve.Options{TargetBytes: 5}), nil, "Options.TargetBytes = 5"},
		{"maximum", newErr(one, bleve.Options{MaxBytes: 5}), nil, "Options.MaxBytes = 5"},
		{"file size", newErr(one, bleve.Options{MaxFileBytes: -1}), nil, "Options.MaxFileBytes = -1"},
		{"pattern", newErr(one, bleve.Options{Exclude: []string{"a", "["}}), nil, `Options.Exclude[1] = "["`},
		{"analyzer", newErr(one, bleve.Options{Analyzer: "klingon"}), nil, `Options.Analyzer = "klingon"`},
		{"k", searchErr(x, t.Context(), "word", 0), nil, "k = 0"},
		{"query", searchErr(x, t.Context(), " \n", 1), bleve.ErrEmptyQuery, `query = " \n"`},
		{"search canceled", searchErr(x, canceled, "word", 1), stop, "search"},
		{"closed", searchErr(closed, t.Context(), "word", 1), bleve.ErrClosed, "search"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			switch {
			case tc.err == nil:
				t.Fatal("no error")
			case tc.is != nil && !errors.Is(tc.err, tc.is):
				t.Errorf("err = %v, want it to wrap %v", tc.err, tc.is)
			case !strings.Contains(tc.err.Error(), tc.text) || !strings.HasPrefix(tc.err.Error(), "bleve: "):
				t.Errorf("err = %v, want it to begin with %q and name %s", tc.err, "bleve: ", tc.text)
			}
		})
	}
}

func TestUnreadableFileFails(t *testing.T) {
	fsys := files("a.md", "word", "b.md", "word")
	_, err := bleve.New(failing{fsys, "b.md"}, bleve.Options{})
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("err = %v, want fs.ErrPermission", err)
	}
}

// failing is a file system in which one file cannot be opened.
type failing struct {
	fs.FS
	name string
}

func (f failing) Open(name string) (fs.File, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.FS.Open(name)
}
