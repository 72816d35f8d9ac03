package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linked  = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?s)```.*?\n```")
)

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	found := map[string]bool{"": true}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r > 127:
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		found[anchor] = true
	}
	return found
}

// TestLinks: links between the pages, and from them into the repository, lead to files and headings that exist.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(append(pages, more...), "../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../examples/README.md")
	links := 0
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linked.FindAllStringSubmatch(fenced.ReplaceAllString(string(raw), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if info, err := os.Stat(target); err != nil || info.IsDir() {
				if err != nil {
					t.Errorf("%s: link to %s: there is no such file", page, m[1])
				}
				continue
			}
			to, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if !anchors(string(to))[anchor] {
				t.Errorf("%s: link to %s: there is no such heading", page, m[1])
			}
		}
	}
	if links < 200 {
		t.Errorf("%d links: does this test still find them?", links)
	}
}
