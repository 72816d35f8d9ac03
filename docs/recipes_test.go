package docs_test

import (
	"errors"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecipes: the diffs of CONTRIBUTING.md fit the code. The lines that a hunk keeps or removes stand in the file, together and once.
// New files are formatted Go code of a folder that has no such file.
func TestRecipes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for i, block := range strings.Split(string(page), "```diff\n") {
		if i == 0 {
			continue
		}
		diff, _, _ := strings.Cut(block, "```")
		for _, part := range strings.Split(diff, "--- ")[1:] {
			before, rest, _ := strings.Cut(part, "\n+++ b/")
			name, lines, _ := strings.Cut(rest, "\n")
			changed++
			if err := fits(before, name, lines); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if changed < 9 {
		t.Errorf("the diffs change only %d files: does this test still find them?", changed)
	}
}

// TestRecipesFindsWrongOnes: a recipe that the code has outgrown is reported.
func TestRecipesFindsWrongOnes(t *testing.T) {
	for name, err := range map[string]error{
		"changed line": fits("a/docs/doc.go", "docs/doc.go", "@@\n package doks\n+\n"),
		"several":      fits("a/docs/doc.go", "docs/doc.go", "@@\n //\n+//\n"),
		"file exists":  fits("/dev/null", "docs/doc.go", "+package docs\n"),
		"no Go":        fits("/dev/null", "docs/new.go", "+package\n"),
		"unformatted":  fits("/dev/null", "docs/new.go", "+package docs\n+var  x int\n"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := fits("a/docs/doc.go", "docs/doc.go", "@@\n package docs\n+// New.\n"); err != nil {
		t.Errorf("right recipe: %v", err)
	}
}

// fits compares the part of a diff that is about one file with the code.
func fits(before, name, lines string) error {
	old, err := os.ReadFile(filepath.Join("..", name))
	if before == "/dev/null" {
		if err == nil {
			return errors.New("it exists already")
		}
		src := []byte(strings.ReplaceAll("\n"+lines, "\n+", "\n")[1:])
		formatted, err := format.Source(src)
		if err == nil && string(formatted) != string(src) {
			err = errors.New("it is not formatted")
		}
		return err
	}
	if err != nil {
		return err
	}
	for _, hunk := range strings.Split(lines, "@@\n")[1:] {
		var kept strings.Builder
		for line := range strings.Lines(hunk) {
			if line[0] != '+' {
				kept.WriteString(line[1:])
			}
		}
		if n := strings.Count("\n"+string(old), "\n"+kept.String()); n != 1 {
			return fmt.Errorf("it has these lines %d times, want once:\n%s", n, kept.String())
		}
	}
	return nil
}
