package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Traces are the names of the open traces.
func Traces() []string { return []string{"multihop-2wiki", "memory-locomo-k100", "chat-mtragun"} }

// Root returns the folder of go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}

// Shared returns ../shared/elem... as seen from the repository's root: material that stands beside the repository and is not
// part of it, such as recorded traces and the independent judge of plans. If it is not there the test is skipped, or fails if
// RAGPILOT_REQUIRE_SHARED is 1.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{Root(t), "..", "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		name := filepath.ToSlash(filepath.Join(append([]string{"../shared"}, elem...)...))
		if os.Getenv("RAGPILOT_REQUIRE_SHARED") == "1" {
			t.Fatalf("%s is missing", name)
		}
		t.Skipf("needs %s beside the repository", name)
	}
	return path
}
