package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// adapters are the pages that show how an adapter is used in five and in fifteen lines.
func adapters() map[string]int {
	return map[string]int{ // and how many adapters each is about
		"langchaingo.md": 2, "bleve.md": 1, "qdrant.md": 1, "elasticsearch.md": 1, "memory.md": 1, "frameworks.md": 4,
	}
}

// TestSnippets: what stands under a heading that ends with "in five lines" or "in fifteen lines" is code of the Example that
// is named below it, which compiles, runs and prints what it says, and has no more lines.
func TestSnippets(t *testing.T) {
	for page, n := range adapters() {
		t.Run(page, func(t *testing.T) {
			raw, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			shown := snippets(string(raw))
			if len(shown) != 2*n {
				t.Errorf("%d snippets, want %d: each adapter in five and in fifteen lines", len(shown), 2*n)
			}
			for _, s := range shown {
				if err := s.check(); err != nil {
					t.Errorf("%q: %v", s.heading, err)
				}
			}
		})
	}
}

// snippet is a piece of code on a page.
type snippet struct {
	heading string
	limit   int // of lines
	code    string
	below   string // the text behind it, up to the next heading
}

// sections matches such a heading, the code, and what is below it.
var sections = regexp.MustCompile("(?m)^##+ (.*[Ii]n (five|fifteen) lines)\n(?:(?:[^`#\n]|`[^`])[^\n]*\n|\n)*```go\n((?s:.*?))```\n((?:[^#\n][^\n]*\n|\n)*)")

func snippets(page string) []snippet {
	var out []snippet
	for _, m := range sections.FindAllStringSubmatch(page, -1) {
		limit := map[string]int{"five": 5, "fifteen": 15}[m[2]]
		out = append(out, snippet{m[1], limit, m[3], m[4]})
	}
	return out
}

// link is that to the Example.
var link = regexp.MustCompile("\\[`(Example\\w*)`\\]\\((\\.\\./[\\w/.-]+_test\\.go)\\)")

func (s snippet) check() error {
	lines := 0
	for line := range strings.Lines(s.code) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "//") {
			lines++
		}
	}
	if lines > s.limit {
		return fmt.Errorf("it has %d lines, want at most %d", lines, s.limit)
	}
	m := link.FindStringSubmatch(s.below)
	if m == nil {
		return fmt.Errorf("below it stands no link to an Example: %q", s.below)
	}
	body, err := example(filepath.FromSlash(m[2]), m[1])
	if err != nil {
		return err
	}
	if !strings.Contains(body, "\n"+s.code) {
		return fmt.Errorf("%s has other code:\n%s", m[1], body)
	}
	return nil
}

// example returns the body of an Example that checks its output, as it would stand without indentation.
func example(file, name string) (string, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, src, 0)
	if err != nil {
		return "", err
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != name {
			continue
		}
		body := string(src[files.Position(f.Body.Lbrace).Offset+1 : files.Position(f.Body.Rbrace).Offset])
		if !strings.Contains(body, "// Output:") {
			return "", fmt.Errorf("%s in %s checks no output: it does not run", name, file)
		}
		return strings.ReplaceAll(body, "\n\t", "\n"), nil
	}
	return "", fmt.Errorf("no %s in %s", name, file)
}
