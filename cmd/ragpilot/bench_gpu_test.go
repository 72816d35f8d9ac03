//go:build !cuda

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBenchGPU: a program without a driver for cards says that nothing was measured, in the file, too.
func TestBenchGPU(t *testing.T) {
	const want = "not run: no device: this program was built without the tag cuda\n"
	name := filepath.Join(t.TempDir(), "results.md")
	out, err := run(t, "bench", "gpu", "--out", name)
	if err != nil || out != want {
		t.Errorf("%v, %q, want %q", err, out, want)
	}
	page, err := os.ReadFile(name)
	if err != nil || string(page) != benchGPUHead+want {
		t.Errorf("%v: %s", err, page)
	}
	if _, err := run(t, "bench", "gpu", "--out", filepath.Join(name, "no", "folder")); err == nil {
		t.Error("a file that cannot be written is no error")
	}
}
