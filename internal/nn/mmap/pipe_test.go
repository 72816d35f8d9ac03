//go:build unix

package mmap_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/mmap"
)

// A pipe is refused at once: opening one would wait for a writer.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no pipes here:", err)
	}
	if _, err := mmap.Open(path); !errors.Is(err, mmap.ErrNotRegular) {
		t.Errorf("opening a pipe: %v", err)
	}
}
