package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

func TestBatchPlan(t *testing.T) {
	dir := t.TempDir()
	csv := filepath.Join(dir, "orders.csv")
	if err := os.WriteFile(csv, []byte("number,city\n1,Lima\n2,Oslo\n3,Lima\n3,Lima\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := newRoot()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append([]string{"batch", "plan"}, args...))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	plan := filepath.Join(dir, "plan.jsonl")
	out, err := run(csv, "--out", plan)
	if err != nil || !strings.Contains(out, "4 rows, 3 requests") {
		t.Fatalf("%v: %s", err, out)
	}
	written, err := os.ReadFile(plan)
	if err != nil || strings.Count(string(written), "\n") != 3 || !strings.Contains(string(written), `"rows":[2,3]`) {
		t.Errorf("%v: %s", err, written)
	}
	var rows bytes.Buffer
	if err := parquet.Write(&rows, []struct{ Number int32 }{{1}, {1}, {2}}); err != nil {
		t.Fatal(err)
	}
	columns := filepath.Join(dir, "orders.parquet")
	if err := os.WriteFile(columns, rows.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(columns); err != nil || !strings.Contains(out, "3 rows, 2 requests") {
		t.Errorf("%v: %s", err, out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{csv, "--columns", "random"}, `order "random"`},
		{[]string{csv, "--format", "xml"}, "xml"},
		{[]string{csv, "--out", csv}, "it is the table"},
		{[]string{filepath.Join(dir, "absent.csv")}, "absent.csv"},
	} {
		if out, err := run(c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q\n%s", c.args, err, c.want, out)
		}
	}
}
