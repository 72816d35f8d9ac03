package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTwoLines: the diff of docs/langchaingo.md, applied to the one program, gives the other. Apart from imports it adds a line
// and changes a line. Both programs are run with the other examples.
func TestTwoLines(t *testing.T) {
	page, err := os.ReadFile("langchaingo.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```diff\n")
	diff, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("no diff in langchaingo.md")
	}
	before, after := lines(t, "conversational-before"), lines(t, "conversational-after")
	got, err := apply(before, strings.SplitAfter(strings.TrimSuffix(diff, "\n"), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, "") != strings.Join(after, "") {
		t.Errorf("applied to conversational-before it gives\n%s", strings.Join(got, ""))
	}
	added, removed := 0, 0
	for line := range strings.Lines(diff) {
		text := strings.TrimSpace(line[1:])
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "), strings.HasPrefix(text, `"github.com/`):
		case line[0] == '+':
			added++
		case line[0] == '-':
			removed++
		}
	}
	_, below, _ := strings.Cut(string(page), "```diff\n"+diff+"```")
	for _, program := range []string{"conversational-before", "conversational-after"} {
		if n := computed(t, program); !strings.Contains(below, n) {
			t.Errorf("the page does not say that %s computes %s tokens", program, n)
		}
	}
	if added != 2 || removed != 1 {
		t.Errorf("%d lines added, %d removed, want a line more and a line changed", added, removed)
	}
}

// TestStoreDiff: what the diff of docs/qdrant.md puts into langchaingo's program is code of an Example.
func TestStoreDiff(t *testing.T) {
	page, err := os.ReadFile("qdrant.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```diff\n")
	diff, below, _ := strings.Cut(rest, "```")
	m := link.FindStringSubmatch(below)
	if m == nil {
		t.Fatal("below the diff stands no link to an Example")
	}
	body, err := example(filepath.FromSlash(m[2]), m[1])
	if err != nil {
		t.Fatal(err)
	}
	placeholders := strings.NewReplacer(`"YOUR_QDRANT_HOST:6334"`, "addr", `"YOUR_COLLECTION_NAME"`, "collection")
	calls := 0
	for line := range strings.Lines(diff) {
		code, added := strings.CutPrefix(line, "+\t")
		if !added || strings.HasPrefix(code, `"`) {
			continue
		}
		calls++
		if !strings.Contains(body, "\n"+placeholders.Replace(code)) {
			t.Errorf("%s has no line %s", m[1], code)
		}
	}
	if calls != 1 {
		t.Errorf("%d lines of code added, want the constructor alone", calls)
	}
}

// computed is the first word of a program's last line of output, with a comma for the thousands.
func computed(t *testing.T, program string) string {
	t.Helper()
	out, err := os.ReadFile(filepath.Join("..", "examples", program, "expected.txt"))
	if err != nil {
		t.Fatal(err)
	}
	printed := strings.Split(strings.TrimSpace(string(out)), "\n")
	n, _, _ := strings.Cut(printed[len(printed)-1], " ")
	return n[:len(n)-3] + "," + n[len(n)-3:]
}

func lines(t *testing.T, program string) []string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("..", "examples", program, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(src), "\n")+"\n", "\n")
}

// apply makes of old what a unified diff says. Line numbers must be right; lines are complete, with their line feeds.
func apply(old, diff []string) (out []string, err error) {
	at := 0 // in old
	for i, line := range diff {
		if !strings.HasSuffix(line, "\n") {
			line += "\n"
		}
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		case strings.HasPrefix(line, "@@ "):
			var first, n int
			if _, err := fmt.Sscanf(line, "@@ -%d,%d ", &first, &n); err != nil {
				return nil, fmt.Errorf("line %d: %q: %w", i+1, line, err)
			}
			out = append(out, old[at:first-1]...)
			at = first - 1
		case line[0] == '+':
			out = append(out, line[1:])
		case at >= len(old) || old[at] != line[1:]:
			return nil, fmt.Errorf("line %d: %q is not line %d of the program", i+1, line, at+1)
		case line[0] == ' ':
			out = append(out, old[at])
			at++
		default:
			at++
		}
	}
	return append(out, old[at:]...), nil
}
