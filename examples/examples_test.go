package examples_test

import (
	"bytes"
	"flag"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// No program imports an internal package of the module, those that README.md says can be copied import no other one either, and some
// are short.
func TestPrograms(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	sentence := regexp.MustCompile("(.+) import public packages only").FindString(string(page))
	copied := regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(sentence, -1)
	if len(copied) < 6 {
		t.Fatalf("README.md names %d programs", len(copied))
	}
	files, err := filepath.Glob(filepath.Join("*", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		own := slices.ContainsFunc(copied, func(m []string) bool { return m[1] == filepath.Dir(file) })
		for _, i := range parsed.Imports {
			if strings.Contains(i.Path.Value, "/ragpilot/internal/") || own && strings.Contains(i.Path.Value, "/internal/") {
				t.Errorf("%s imports %s", file, i.Path.Value)
			}
		}
	}
	for name, most := range map[string]int{"resent": 60, "tool-agent": 60, "reuse-blocks": 40, "compressed-handbook": 40, "batch-chain": 50} {
		source, err := os.ReadFile(filepath.Join(name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(source, []byte("\n")); n > most {
			t.Errorf("%s has %d lines, want at most %d", name, n, most)
		}
	}
}
