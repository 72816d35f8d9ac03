package demo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/demo"
)

// The README names the saving of this demonstration, and docs/results.md shows its output. Both are rewritten with -update.
func TestReadme(t *testing.T) {
	r := run(t, config(t))
	saving, _ := r.Saving()
	root := filepath.Join("..", "..", "..")
	compare(t, filepath.Join(root, "README.md"), func(text string) string {
		want := fmt.Sprintf("**%.0f %% fewer prompt tokens**", 100*saving)
		text = regexp.MustCompile(`\*\*\d+ % fewer prompt tokens\*\*`).ReplaceAllString(text, want)
		if !strings.Contains(text, want) {
			t.Error("README.md does not say how much is saved")
		}
		return text
	})
	compare(t, filepath.Join(root, "docs", "results.md"), func(text string) string {
		return between(t, between(t, text, "prompts", prompts(t, r)), "output", excerpt(table(t, r)))
	})
}

// compare fails if a page is not what want makes of it. With -update it rewrites the page.
func compare(t *testing.T, name string, want func(text string) string) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text := want(string(raw))
	if text == string(raw) {
		return
	}
	if !*update {
		t.Fatalf("%s does not show what the demonstration prints (run with -update)", filepath.Base(name))
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The lines for langchaingo programs are those of a tested example.
func TestReadmeExample(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join("..", "..", "..", "retriever", "example_lines_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```go\n")
	code, _, found := strings.Cut(rest, "```")
	if !found || strings.Count(code, "\n") > 5 {
		t.Errorf("README.md has no example of at most five lines: %q", code)
	}
	for line := range strings.Lines(code) {
		if !strings.Contains(string(example), "\t"+line) {
			t.Errorf("the examples of retriever do not have %q", line)
		}
	}
}

// between replaces what stands between the marks of that name.
func between(t *testing.T, text, name, body string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, "<!-- "+name+" -->\n")
	_, after, ok2 := strings.Cut(rest, "<!-- /"+name+" -->\n")
	if !ok || !ok2 {
		t.Fatalf("the page lacks the marks %s", name)
	}
	return before + "<!-- " + name + " -->\n```\n" + body + "```\n<!-- /" + name + " -->\n" + after
}

// excerpt is the table without most requests and without the legend.
func excerpt(table string) string {
	lines := strings.SplitAfter(table, "\n")
	var b strings.Builder
	part, request := 0, 0
	for _, line := range lines {
		if line == "\n" {
			part++
		}
		switch {
		case part == 1 && strings.Contains(line, " without "):
			request++
		case part == 4: // the legend
			return b.String()
		}
		switch {
		case part != 1 || request == 0 || request == 1 || request == 4 || request == 24:
			b.WriteString(line)
		case request == 5 && strings.Contains(line, " without "):
			b.WriteString("...\n")
		}
	}
	return b.String()
}

// prompts draws two requests on one line for each side, with what came from the cache in brackets.
func prompts(t *testing.T, r *demo.Result) string {
	t.Helper()
	var b strings.Builder
	shown := 0
	for i, q := range r.Questions {
		if q.ID() != "dora-1" && q.ID() != "dora-6" {
			continue
		}
		shown++
		fmt.Fprintf(&b, "%s\n", q.Question)
		for _, side := range []struct {
			name string
			sent demo.Sent
		}{{"without", r.Without[i]}, {"with", r.With[i]}} {
			fmt.Fprintf(&b, "  %-8s %-84s %5d of %d computed\n", side.name, line(r, side.sent), side.sent.Computed(), side.sent.Prompt)
		}
	}
	if shown != 2 {
		t.Fatalf("%d of the two requests are in the script", shown)
	}
	return b.String()
}

func line(r *demo.Result, s demo.Sent) string {
	words, open, begin := []string{}, false, 0
	for _, p := range s.Parts {
		word := strings.ReplaceAll(string(p.Kind), " ", "-")
		switch p.Kind {
		case demo.BlockPart:
			word = r.Code(p.Block)
		case demo.RefPart:
			word = "see-" + r.Code(p.Block)
		}
		reused := begin+p.Tokens/2 < s.Cached // a cache block may end inside a part
		switch {
		case reused && !open:
			word, open = "["+word, true
		case !reused && open:
			words[len(words)-1] += "]"
			open = false
		}
		words = append(words, word)
		begin += p.Tokens
	}
	return strings.Join(words, " ")
}
