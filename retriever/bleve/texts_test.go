package bleve_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ragpilot/ragpilot/retriever/bleve"
)

func TestTexts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.txt": "Two.\r\n\r\nThree.\n", "a.md": "# One\n", "c.html": "<h1>Four</h1><p>Five &amp; six</p>", "d.txt": "a\x00b", "e.txt": "\n",
		"f.bin": "x", ".git/g.txt": "x",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, skipped, err := bleve.Texts(t.Context(), bleve.Options{Dir: dir, Include: bleve.Formats()})
	if err != nil {
		t.Fatal(err)
	}
	want := []bleve.Text{
		{Name: "a.md", Text: "# One"},
		{Name: "b.txt", Text: "Two.\n\nThree."},
		{Name: "c.html", Text: "# Four\n\nFive & six"},
	}
	if len(all) != len(want) || all[0] != want[0] || all[1] != want[1] || all[2] != want[2] {
		t.Errorf("%q, want %q", all, want)
	}
	if len(skipped) != 2 || skipped[0].Path != "d.txt" || !errors.Is(skipped[0].Err, bleve.ErrBinary) ||
		!errors.Is(skipped[1].Err, bleve.ErrNoText) {
		t.Errorf("skipped %v", skipped)
	}
	if _, _, err := bleve.Texts(t.Context(), bleve.Options{Dir: t.TempDir()}); !errors.Is(err, bleve.ErrNoText) {
		t.Errorf("error %v of an empty folder", err)
	}
	if _, _, err := bleve.Texts(t.Context(), bleve.Options{Dir: filepath.Join(dir, "none")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v of a folder that is not there", err)
	}
}
