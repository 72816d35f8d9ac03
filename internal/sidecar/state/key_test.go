package state_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/state"
)

func TestKey(t *testing.T) {
	dir := t.TempDir()
	first, err := state.Key(dir)
	if err != nil || len(first) != 32 {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	if again, err := state.Key(dir); err != nil || !bytes.Equal(first, again) {
		t.Errorf("another key after a restart: %v", err)
	}
	if other, err := state.Key(t.TempDir()); err != nil || bytes.Equal(first, other) {
		t.Errorf("two folders have one key: %v", err)
	}
	path := filepath.Join(dir, "hash.key")
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := state.Key(dir); err == nil || !strings.Contains(err.Error(), "hash.key: mode 0644") {
			t.Errorf("a key that all can read: %v", err)
		}
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Key(dir); err == nil || !strings.Contains(err.Error(), "5 bytes") {
		t.Errorf("a short key: %v", err)
	}
}
