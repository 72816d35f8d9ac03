package docs_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// written are the regions of pages that commands write: the file in this folder with the same text, or what else writes or compares them. Their words
// do not count in the budget.
var written = map[string]string{
	"README.md results":              "TestReadmeResults",
	"docs/load.md rates":             "load/rates.txt",
	"docs/load.md sustained":         "load/sustained.txt",
	"docs/memory.md bench":           "load/memory-bench.txt",
	"docs/memory.md load":            "load/memory-load.txt",
	"docs/memory.md judged":          "docs/load/memory.sh",
	"docs/routing.md chat-mtragun":   "load/routing-chat-mtragun.txt",
	"docs/routing.md multihop-2wiki": "load/routing-multihop-2wiki.txt",
	"docs/reference.md commands":     "TestReference",
	"docs/reference.md metrics":      "TestReference",
	"docs/reference.md settings":     "TestReference",
	"docs/results.md judge":          ".ci/judge.sh",
	"docs/results.md held out":       "internal/lab/replay",
	"docs/results.md output":         "internal/lab/demo",
	"docs/results.md prompts":        "internal/lab/demo",
	"docs/tiers.md tiers":            "TestTiersFigures",
}

// begins matches the mark in front of a region: <!-- name: begin -->, which <!-- name: end --> closes, or <!-- name -->, which <!-- /name --> does.
var begins = regexp.MustCompile(`<!-- ([\w -]+?)(: begin)? -->`)

// regions returns the text of a page's regions by name, and the page without those that commands write.
func regions(t *testing.T, page, text string) (found map[string]string, rest string) {
	t.Helper()
	found, rest = map[string]string{}, text
	for _, m := range begins.FindAllStringSubmatch(text, -1) {
		end := "<!-- /" + m[1] + " -->"
		if m[2] != "" {
			end = "<!-- " + m[1] + ": end -->"
		}
		_, after, _ := strings.Cut(text, m[0])
		region, _, ok := strings.Cut(after, end)
		if !ok {
			t.Fatalf("%s: the region %q has no end", page, m[1])
		}
		found[m[1]] = region
		if written[page+" "+m[1]] != "" {
			rest = strings.Replace(rest, region, "", 1)
		}
	}
	return found, rest
}

// TestRegions: each region between marks is known, and those that hold a file's text hold it as it is.
func TestRegions(t *testing.T) {
	seen := 0
	for _, page := range pages(t) {
		raw, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		found, _ := regions(t, page, string(raw))
		for name, region := range found {
			file := written[page+" "+name]
			if file != "" {
				seen++
			} else if name != "routes" { // written by hand
				t.Errorf("%s: nothing is known to write or compare the region %q", page, name)
			}
			if filepath.Ext(file) != ".txt" {
				continue
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if region != "\n```\n"+strings.TrimRight(string(want), "\n")+"\n```\n" {
				t.Errorf("%s: the region %q is not docs/%s", page, name, file)
			}
		}
	}
	if seen != len(written) {
		t.Errorf("%d of %d regions that are written are on the pages", seen, len(written))
	}
}

// files lists the files of the repository, those that are new included.
func files(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Skip("not a checkout of git: ", err)
	}
	found := strings.Split(strings.TrimSpace(string(out)), "\n")
	return slices.DeleteFunc(found, func(name string) bool { // removed, and not committed yet
		_, err := os.Lstat(filepath.Join("..", name))
		return err != nil
	})
}

// pages lists the Markdown files.
func pages(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(files(t), func(name string) bool { return path.Ext(name) != ".md" })
}
