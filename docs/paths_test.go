package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ticked matches what stands in backticks on one line.
var ticked = regexp.MustCompile("`([^`\n]+)`")

// folders are those at the top level. A name in backticks that begins with one of them is a path.
func folders(t *testing.T) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, e := range entries {
		if e.IsDir() {
			found[e.Name()] = true
		}
	}
	return found
}

// drawn matches file names in a picture, with or without their folder.
var drawn = regexp.MustCompile(`[\w/]+\.go\b`)

// missing returns the paths in backticks, and the files in pictures, that do not exist. A path may have *. It is skipped if it has <name>,
// which the reader chooses.
func missing(page string, folders map[string]bool, files string) (paths int, missing []string) {
	for _, m := range ticked.FindAllStringSubmatch(page, -1) {
		path := m[1]
		folder, _, deep := strings.Cut(path, "/")
		file := !deep && strings.HasSuffix(path, ".go")
		if strings.ContainsAny(path, " <>()=") || !folders[folder] && !file {
			continue
		}
		paths++
		found, _ := filepath.Glob(filepath.Join("..", path))
		if len(found) == 0 && (deep || !strings.Contains(files, "/"+path+"\n")) {
			missing = append(missing, path)
		}
	}
	for i, picture := range strings.Split(page, "```") {
		if i%2 == 0 || !strings.HasPrefix(picture, "\n") { // a language follows: it is code
			continue
		}
		for _, name := range drawn.FindAllString(picture, -1) {
			paths++
			if !strings.Contains(files, "/"+name+"\n") {
				missing = append(missing, name)
			}
		}
	}
	return paths, missing
}

// goFiles lists the project's Go files, each with a slash before and a line feed behind its path.
func goFiles(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && d.Name() == ".git" { // it is a file in a worktree of git
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			b.WriteString("/" + filepath.ToSlash(path) + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPaths: the pages that are a map of the code name files and folders that exist.
func TestPaths(t *testing.T) {
	for page, least := range map[string]int{"architecture.md": 100, "../CONTRIBUTING.md": 20} {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		paths, wrong := missing(string(raw), folders(t), goFiles(t))
		for _, path := range wrong {
			t.Errorf("%s: there is no %s", page, path)
		}
		if paths < least {
			t.Errorf("%s: %d paths, want at least %d: does this test still find them?", page, paths, least)
		}
	}
}

// TestPathsFindsWrongOnes: a wrong path is reported, and other text in backticks is not.
func TestPathsFindsWrongOnes(t *testing.T) {
	page := "`contextpilot/pilot.go`, `contextpilot/policy_*.go`, `internal/no-such-folder`, `nowhere.go`, `contextpilot/policy_<name>.go`, " +
		"`Plan.Fault`, `POST /evict`\n```\nsettings ► auth.go ► lost.go\n```\n```diff\n+++ b/new.go\n```\n"
	paths, wrong := missing(page, folders(t), goFiles(t))
	if got := strings.Join(wrong, " "); paths != 6 || got != "internal/no-such-folder nowhere.go lost.go" {
		t.Errorf("%d paths, wrong are %q", paths, got)
	}
}

// TestEveryFolderIsOnTheMap: architecture.md has a row for each folder with packages, at the top level and below internal.
func TestEveryFolderIsOnTheMap(t *testing.T) {
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]bool{}
	for path := range strings.Lines(goFiles(t)) {
		parts := strings.Split(strings.TrimPrefix(path, "/../"), "/")
		if len(parts) < 2 || strings.HasPrefix(parts[0], ".") {
			continue
		}
		folder := parts[0]
		if folder == "internal" || folder == "cmd" {
			folder += "/" + parts[1]
		}
		if checked[folder] {
			continue
		}
		checked[folder] = true
		if !strings.Contains(string(page), "\n| `"+folder+"`") {
			t.Errorf("architecture.md has no row for %s", folder)
		}
	}
	if len(checked) < 15 {
		t.Errorf("only the folders %v were found", checked)
	}
}
