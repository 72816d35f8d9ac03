package mmap_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/mmap"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string][]byte{"empty": {}, "one": {7}, "pages": bytes.Repeat([]byte("weights "), 3000)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := mmap.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f.Bytes(), want) {
			t.Errorf("%s: %d bytes are not the file's %d", name, len(f.Bytes()), len(want))
		}
		for range 2 {
			if err := f.Close(); err != nil {
				t.Errorf("%s: close: %v", name, err)
			}
		}
	}
	if _, err := mmap.Open(dir); !errors.Is(err, mmap.ErrNotRegular) {
		t.Errorf("opening a folder: %v", err)
	}
	if _, err := mmap.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening nothing: %v", err)
	}
}
