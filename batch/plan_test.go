package batch_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func open(t *testing.T, csv string) *table.Table {
	t.Helper()
	in, err := table.Open(t.Context(), "-", table.Options{Format: table.CSV, Stdin: strings.NewReader(csv)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return in
}

// TestPlan checks for tables with few values that each row is answered once, that each request has every column once, that only equal rows
// share a request, and that the totals are those of the written plan.
func TestPlan(t *testing.T) {
	testkit.NotUnderRace(t)
	rapid.Check(t, func(r *rapid.T) {
		columns := []string{"a", "b", "c"}
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "xy", "12.5", "12.7"}), 3, 3), 0, 30).Draw(r, "rows")
		var csv strings.Builder
		csv.WriteString(strings.Join(columns, ",") + "\n")
		for _, row := range rows {
			csv.WriteString(strings.Join(row, ",") + "\n")
		}
		o := batch.Options{
			Order: rapid.SampledFrom([]batch.Order{"", batch.PerRow, batch.Fixed, batch.AsIs}).Draw(r, "order"),
			Cells: rapid.SampledFrom([]batch.Cells{"", batch.Labelled, batch.Values}).Draw(r, "cells"),
		}
		p, err := batch.NewPlan(t.Context(), open(t, csv.String()), o)
		if err != nil {
			r.Fatal(err)
		}
		defer p.Close()
		var out bytes.Buffer
		if err := p.Write(&out); err != nil {
			r.Fatal(err)
		}
		answered, requests := make([]bool, len(rows)), 0
		for line := range strings.Lines(out.String()) {
			var q batch.Request
			if err := json.Unmarshal([]byte(line), &q); err != nil {
				r.Fatal(err)
			}
			requests++
			if len(q.Rows) == 0 {
				q.Rows = []int{q.Row}
			}
			for _, i := range q.Rows {
				if answered[i] || !slices.Equal(rows[i], rows[q.Row]) {
					r.Fatalf("row %d is answered twice, or by another row: %s", i, line)
				}
				answered[i] = true
			}
			if o.Order == batch.AsIs && !slices.Equal(q.Columns, columns) || !slices.Equal(slices.Sorted(slices.Values(q.Columns)), columns) {
				r.Fatalf("columns of %s", line)
			}
		}
		total := p.Totals()
		if slices.Contains(answered, false) || total.Rows != len(rows) || total.Requests != requests {
			r.Fatalf("answered %v, totals %+v, %d requests", answered, total, requests)
		}
		if total.Saved < total.FileOrder || total.Saved > total.Bound || total.Bound > total.Bytes {
			r.Fatalf("totals %+v", total)
		}
	})
}

// TestPlanWithout: the plan without a column is the plan of a table that does not have it.
func TestPlanWithout(t *testing.T) {
	testkit.NotUnderRace(t)
	rapid.Check(t, func(r *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "xy"}), 4, 4), 0, 20).Draw(r, "rows")
		hidden := rapid.IntRange(0, 3).Draw(r, "hidden")
		columns := []string{"a", "b", "c", "d"}
		var all, rest strings.Builder
		for _, row := range append([][]string{columns}, rows...) {
			all.WriteString(strings.Join(row, ",") + "\n")
			rest.WriteString(strings.Join(slices.Delete(slices.Clone(row), hidden, hidden+1), ",") + "\n")
		}
		written := func(csv string, o batch.Options) string {
			p, err := batch.NewPlan(t.Context(), open(t, csv), o)
			if err != nil {
				r.Fatal(err)
			}
			defer p.Close()
			var out bytes.Buffer
			if err := p.Write(&out); err != nil {
				r.Fatal(err)
			}
			return out.String()
		}
		order := rapid.SampledFrom([]batch.Order{batch.PerRow, batch.Fixed, batch.AsIs}).Draw(r, "order")
		got := written(all.String(), batch.Options{Order: order, Without: columns[hidden : hidden+1]})
		if want := written(rest.String(), batch.Options{Order: order}); got != want {
			r.Fatalf("without %s:\n%s\nwant\n%s", columns[hidden], got, want)
		}
	})
}

func TestPlanRefuses(t *testing.T) {
	for _, c := range []struct {
		csv  string
		o    batch.Options
		want string
	}{
		{"a,b\n1,2\n", batch.Options{Order: "sideways"}, `order "sideways": want per-row, fixed or as-is`},
		{"a,b\n1,2\n", batch.Options{Cells: "bare"}, `cells "bare": want labelled or values`},
		{"a,b\n1,2\n1\n", batch.Options{}, "line 3"},
		{"a,b\n1,2\n", batch.Options{Without: []string{"c"}}, `column "c": no such column; the table has "a", "b"`},
		{"a,b\n1,2\n", batch.Options{Without: []string{"a", "b"}}, "no columns to be ordered"},
	} {
		p, err := batch.NewPlan(t.Context(), open(t, c.csv), c.o)
		if err == nil {
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
	}
}

// BenchmarkPlanFile reads a CSV file of a number and nine columns with 5 to 25,000 values each, plans it and writes the plan. "peak-MB" is
// the most memory that the process has had so far.
func BenchmarkPlanFile(b *testing.B) {
	for _, rows := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "made.csv")
			writeColumns(b, path, rows, 5, 10, 50, 100, 250, 1000, 5000, 10_000, 25_000)
			b.ReportAllocs()
			var saved float64
			for b.Loop() {
				p, err := batch.NewPlan(b.Context(), opened(b, path), batch.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Write(io.Discard); err != nil {
					b.Fatal(err)
				}
				saved = float64(p.Totals().Saved) / float64(p.Totals().Bytes)
				if err := p.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(saved, "saved/byte")
			if _, peak, err := figures.Memory(os.Getpid()); err == nil {
				b.ReportMetric(float64(peak)/1e6, "peak-MB")
			}
		})
	}
}

// writeColumns writes a table of rows with their number and drawn values, so many of each column.
func writeColumns(b *testing.B, path string, rows int, values ...int) {
	b.Helper()
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	out, rnd := bufio.NewWriter(file), rand.New(rand.NewPCG(1, 2))
	fmt.Fprint(out, "number")
	for c := range values {
		fmt.Fprintf(out, ",c%d", c)
	}
	for r := range rows {
		fmt.Fprintf(out, "\n%d", r)
		for c, n := range values {
			fmt.Fprintf(out, ",value %d of column %d", rnd.IntN(n), c)
		}
	}
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
}
