package docs_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A size is what the budget counts of a folder at the top level.
type size struct {
	code    int // lines of Go outside tests
	tests   int // lines of Go in tests
	other   int // lines of assembly, CUDA, C, shell and Python, in testdata as well
	folders int // with Go
	words   int // of Markdown, without CHANGELOG.md and regions that commands write
}

func (s *size) add(o size) {
	s.code += o.code
	s.tests += o.tests
	s.other += o.other
	s.folders += o.folders
	s.words += o.words
}

const budgetFile = "../.ci/budget"

// measure counts a file.
func measure(t *testing.T, name string, text []byte) (s size) {
	t.Helper()
	lines := bytes.Count(text, []byte("\n"))
	switch ext := path.Ext(name); {
	case ext == ".go" && strings.HasSuffix(name, "_test.go"):
		s.tests = lines
	case ext == ".go":
		s.code = lines
	case slices.Contains([]string{".s", ".cu", ".cpp", ".h", ".sh", ".py"}, ext), bytes.HasPrefix(text, []byte("#!")):
		s.other = lines
	case ext == ".md" && name != "CHANGELOG.md":
		_, rest := regions(t, name, string(text))
		s.words = len(strings.Fields(rest))
	}
	return s
}

// TestBudget: the repository is not larger than .ci/budget says. Who makes it larger deletes elsewhere, or writes there what it is to hold.
func TestBudget(t *testing.T) {
	sizes, folders := map[string]*size{}, map[string]bool{}
	for _, name := range files(t) {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		top, _, deep := strings.Cut(name, "/")
		if !deep {
			top = "."
		}
		if sizes[top] == nil {
			sizes[top] = &size{}
		}
		sizes[top].add(measure(t, name, text))
		if dir := path.Dir(name); path.Ext(name) == ".go" && !folders[dir] {
			folders[dir] = true
			sizes[top].folders++
		}
	}
	allowed, text := map[string]size{}, readBudget(t)
	var total, allowance size
	for line := range strings.Lines(text) {
		var name string
		var s size
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if _, err := fmt.Sscan(line, &name, &s.code, &s.tests, &s.other, &s.folders, &s.words); err != nil {
			t.Fatalf(".ci/budget: %q: %v", line, err)
		}
		if name == "total" {
			allowance = s
		} else {
			allowed[name] = s
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		over(t, name, *sizes[name], allowed[name])
		total.add(*sizes[name])
	}
	over(t, "total", total, allowance)
	if *update {
		writeBudget(t, text, sizes, allowance)
	}
}

func over(t *testing.T, name string, is, allowed size) {
	t.Helper()
	for _, c := range []struct {
		what        string
		is, allowed int
	}{
		{"lines of Go", is.code, allowed.code},
		{"lines of tests", is.tests, allowed.tests},
		{"lines of other code", is.other, allowed.other},
		{"folders with Go", is.folders, allowed.folders},
		{"words", is.words, allowed.words},
	} {
		if c.is > c.allowed && !*update {
			t.Errorf("%s: %d %s, .ci/budget allows %d", name, c.is, c.what, c.allowed)
		}
	}
}

func readBudget(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(budgetFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// writeBudget writes what the folders have, rounded up to hundreds, below the comment at the top. The sum stays what it was.
func writeBudget(t *testing.T, text string, sizes map[string]*size, total size) {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		b.WriteString(line)
	}
	row := func(name string, s size) {
		fmt.Fprintf(&b, "%-15s %7d %7d %6d %8d %6d\n", name, s.code, s.tests, s.other, s.folders, s.words)
	}
	up := func(n int) int { return (n + 99) / 100 * 100 }
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if s := *sizes[name]; s != (size{}) {
			row(name, size{up(s.code), up(s.tests), up(s.other), s.folders, up(s.words)})
		}
	}
	row("total", total)
	if err := os.WriteFile(budgetFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
