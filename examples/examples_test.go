package examples_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write expected.txt")

// Each program must print its expected.txt, and nothing to standard error.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("builds whole programs")
	}
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatalf("%d programs, %v", len(mains), err)
	}
	for _, file := range mains {
		name := filepath.Dir(file)
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "run", "./"+name)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			if stderr.Len() > 0 {
				t.Errorf("standard error: %s", stderr.String())
			}
			expected := filepath.Join(name, "expected.txt")
			if *update {
				if err := os.WriteFile(expected, stdout.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(expected)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), stdout.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
