package table

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes a file of a test.
func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens a table of a test.
func open(t testing.TB, source string, opts Options) *Table {
	t.Helper()
	table, err := Open(t.Context(), source, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	return table
}

// dump returns the columns and rows of a table as lines; ∅ is NULL.
func dump(t testing.TB, table *Table) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(strings.Join(table.Columns, "|") + "\n")
	for row, err := range table.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(row.Place() + ": ")
		for i, cell := range row.Cells {
			if i > 0 {
				b.WriteString("|")
			}
			if row.Null(i) {
				cell = "∅"
			}
			b.WriteString(cell)
		}
		if row.ID != "" {
			b.WriteString(row.ID + " " + row.URL + " " + string(row.Body))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// firstError returns the error of opening and checking.
func firstError(t testing.TB, source string, opts Options) error {
	t.Helper()
	table, err := Open(t.Context(), source, opts)
	if err != nil {
		return err
	}
	defer table.Close()
	_, err = table.Check(t.Context())
	return err
}
