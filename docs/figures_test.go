package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The README's table of results shows figures of docs/results.md, which .ci/judge.sh compares with what is measured.
func TestReadmeResults(t *testing.T) {
	shown := tableRows(t, marked(t, filepath.Join("..", "README.md"), "<!-- results -->", "<!-- /results -->"))
	judged := tableRows(t, marked(t, "results.md", "<!-- judge: begin -->", "<!-- judge: end -->"))
	// The bound and the policies stand in the first of the judge's tables: policy, mode, and a cell for each trace.
	want := [][]string{append([]string{judged[0][0]}, judged[0][2:]...)}
	for _, row := range shown[1:] {
		policy, mode := row[0], "online"
		if name, ok := strings.CutSuffix(policy, " --offline`"); ok {
			policy, mode = name+"`", "offline"
		}
		policy, _, _ = strings.Cut(policy, " (") // a remark
		if policy == "upper bound for any order" {
			policy, mode = "*upper bound for any order (`ragpilot bounds`)*", "both"
		}
		found := false
		for _, j := range judged {
			if len(j) < 3 || j[0] != policy || j[1] != mode || found {
				continue
			}
			found = true
			expected := []string{row[0]}
			for _, cell := range j[2:] {
				unlimited, _, _ := strings.Cut(cell, " / ")
				expected = append(expected, strings.Trim(unlimited, "*"))
			}
			want = append(want, expected)
		}
		if !found {
			t.Errorf("docs/results.md has no row for %s", row[0])
		}
	}
	if len(want) < 9 {
		t.Errorf("only %d rows", len(want))
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("README.md does not show the figures of docs/results.md (-results +README):\n%s", diff)
	}
}

// marked returns what stands between two marks of a file.
func marked(t *testing.T, file, begin, end string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(raw), begin)
	text, _, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks %s and %s", file, begin, end)
	}
	return text
}

// tableRows returns the cells of all rows of Markdown tables, without the lines under the heads.
func tableRows(t *testing.T, text string) [][]string {
	t.Helper()
	var rows [][]string
	for line := range strings.Lines(text) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !ok {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.TrimSuffix(line, " |"), " | ") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		t.Fatal("no table")
	}
	return rows
}
