//go:build unix

package vllmtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// table is printed with columns in line.
type table struct {
	rows [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, row := range t.rows {
		_, _ = w.Write([]byte(strings.Join(row, "\t") + "\n"))
	}
	_ = w.Flush()
	return b.String()
}

// figures is what a test leaves behind: a table to read and the values of it.
type figures struct {
	Test    string    `json:"test"`
	Taken   time.Time `json:"taken"`
	Loads   []string  `json:"loads"` // processes that want to run, over one and five minutes: at the beginning and the end
	Values  any       `json:"values"`
	Table   string    `json:"-"`
	Release string    `json:"vllm"`
}

// report prints the figures and writes them to the folder that the environment names, if it names one.
func (f *figures) report(t *testing.T, name string) {
	t.Helper()
	f.Test, f.Taken = t.Name(), time.Now().UTC().Truncate(time.Second)
	t.Logf("\n%s", f.Table)
	folder := os.Getenv(envFigures)
	if folder == "" {
		return
	}
	text, err := json.MarshalIndent(f, "", " ")
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".json"), append(text, '\n'), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".txt"), []byte(f.Table), 0o600)
	}
	if err != nil {
		t.Errorf("figures: %v", err)
	}
}
