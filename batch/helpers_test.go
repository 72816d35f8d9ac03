package batch

import (
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/batch/table"
)

// failer is what tests and properties have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// csvTable is a table in memory. It is closed when the test ends.
func csvTable(t *testing.T, csv string) *table.Table {
	t.Helper()
	return tableOf(t, table.CSV, csv)
}

func tableOf(t *testing.T, format table.Format, text string) *table.Table {
	t.Helper()
	in, err := table.Open(t.Context(), "-", table.Options{Format: format, Stdin: strings.NewReader(text), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return in
}

// arranged plans a task for a table.
func arranged(t *testing.T, csv string, task Task) (*prepared, error) {
	t.Helper()
	return arrange(t, csvTable(t, csv), task)
}

func arrange(t *testing.T, in *table.Table, task Task) (*prepared, error) {
	t.Helper()
	p, err := describe(t.Context(), in, &task)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, p.arrange(t.Context(), t.TempDir())
}

// promptsOf returns the text that the engine gets for each row.
func promptsOf(t *testing.T, csv string, task Task) []string {
	t.Helper()
	p, err := arranged(t, csv, task)
	if err != nil {
		t.Fatal(err)
	}
	return byRow(t, p)
}

func byRow(t failer, p *prepared) []string {
	t.Helper()
	prompts, seen := make([]string, p.rows.Len()), make([]bool, p.rows.Len())
	for _, r := range requestsOf(t, p) {
		sent, err := p.spec.request(r.Text, r.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			if seen[row] {
				t.Fatalf("row %d has two requests", row)
			}
			prompts[row], seen[row] = sent.Messages[len(sent.Messages)-1].Content, true
		}
	}
	for row, ok := range seen {
		if !ok {
			t.Fatalf("row %d has no request", row)
		}
	}
	return prompts
}

func requestsOf(t failer, p *prepared) (all []queue.Request) {
	t.Helper()
	for r, err := range p.requests() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}
