package eval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// fakeColumns is a scripted model: it looks for the note in the first sight cells of a row, and reports as cached what its last prompt began
// with. It stands for a model that overlooks what comes late. Of the rows it can read it gets one in eight wrong.
type fakeColumns struct {
	sight int

	mu      sync.Mutex
	prompts []string
}

func (*fakeColumns) Name() string { return "fake columns" }

func (f *fakeColumns) Generate(context.Context, engines.Request, int) (string, error) {
	return "", errors.New("usage is to be asked for")
}

func (f *fakeColumns) GenerateUsage(_ context.Context, req engines.Request, _ int) (string, engines.Usage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := req.Messages[len(req.Messages)-1].Content
	usage := engines.Usage{PromptTokens: len(text), CachedKnown: true}
	if n := len(f.prompts); n > 0 {
		usage.CachedTokens = shared(f.prompts[n-1], text)
	}
	f.prompts = append(f.prompts, text)
	cells, _, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(cells, "\n")
	for _, line := range lines[:min(f.sight, len(lines))] {
		if _, colour, ok := strings.Cut(line, " is "); ok && hash(line)%8 > 0 {
			return "The colour of this row is " + colour + ".", usage, nil
		}
	}
	return "I do not know.", usage, nil
}

func shared(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32()
}

// colours is a table whose first column says the last one. All notes differ, so that orders that share prefixes put them at the end.
func colours(rows, values int) string {
	var b strings.Builder
	b.WriteString("note,city,kind,colour\n")
	for i := range rows {
		colour, city, kind := i*11%values, []string{"Rome", "Oslo", "Bern"}[i%3], []string{"old", "new"}[i/5%2]
		fmt.Fprintf(&b, "number %d is c%d,%s,%s,c%d\n", i, colour, city, kind, colour)
	}
	return b.String()
}

func openCSV(t testing.TB, csv string) *table.Table {
	t.Helper()
	in := testkit.Must(table.Open(t.Context(), "-", table.Options{Format: table.CSV, Stdin: strings.NewReader(csv)}))(t)
	t.Cleanup(func() { in.Close() })
	return in
}

// asked asks all forms, as the command does.
func asked(t testing.TB, c *eval.Cells, s eval.Scorer) *eval.Report {
	t.Helper()
	var first eval.Header
	var all [][]eval.Outcome
	for i := range c.Forms {
		run := c.Forms[i].Run()
		run.Scorer, run.System, run.MaxTokens = s, eval.CellSystem, 16
		if i == 0 {
			first = testkit.Must(run.Header())(t)
		}
		all = append(all, do(t, run))
	}
	settings := eval.DefaultSettings()
	settings.Resamples = 1000
	return testkit.Must(c.Judge(first, all, settings))(t)
}

func cells(t testing.TB, csv string, rows int) *eval.Cells {
	t.Helper()
	return testkit.Must(eval.NewCells(t.Context(), openCSV(t, csv), eval.CellOptions{Ask: "colour", Rows: rows, Seed: 1}))(t)
}

// TestCells: a model that reads only the beginning of a row is found to lose by other orders, and one that reads all of it is not.
func TestCells(t *testing.T) {
	testkit.NotUnderRace(t)
	planned := map[int]*eval.Cells{7: cells(t, colours(300, 7), 250), 30: cells(t, colours(300, 30), 250)}
	for _, c := range []struct {
		sight, values int
		want          eval.Verdict
		advised       []string
	}{
		{1, 7, eval.Inferior, []string{"as-is"}},
		{3, 7, eval.NotInferior, []string{"fixed", "per-row"}},
		{1, 30, eval.Inferior, []string{"as-is"}},
		{3, 30, eval.NotInferior, []string{"fixed", "per-row"}},
	} {
		r := asked(t, planned[c.values], &fakeColumns{sight: c.sight})
		for i, name := range []string{"as-is", "fixed", "per-row"} {
			if r.Arms[i].Name != name || i > 0 && r.Arms[i].Verdict != c.want {
				t.Errorf("%+v: arm %s: %q", c, r.Arms[i].Name, r.Arms[i].Verdict)
			}
		}
		if exact := r.Arms[0].Exact; exact < 0.8 || exact > 0.95 || r.Rows != 250 || r.Table.Rows != 300 {
			t.Errorf("%+v: %v of %d rows, %+v", c, exact, r.Rows, r.Table)
		}
		if !slices.Contains(c.advised, r.Table.Advised) {
			t.Errorf("%+v: advised %s", c, r.Table.Advised)
		}
		first, other := r.Arms[0].Layouts, r.Arms[2].Layouts
		if other.Computed >= first.Computed || other.Tokens != first.Tokens || other.Reported != first.Reported ||
			*other.Cached <= *first.Cached {
			t.Errorf("%+v: as-is %+v, per-row %+v", c, first, other)
		}
		if p, ok := r.Choice(); ok {
			t.Errorf("a profile of a table's columns: %+v", p)
		}
	}
}

// constant gives all rows the same answer.
type constant string

func (constant) Name() string { return "constant" }

func (c constant) Generate(context.Context, engines.Request, int) (string, error) {
	return string(c), nil
}

// TestCellsWeak: a model that gives all rows the most frequent value loses nothing by any order, which says nothing.
func TestCellsWeak(t *testing.T) {
	testkit.NotUnderRace(t)
	csv := strings.ReplaceAll(colours(200, 7), "c1", "c2")
	csv = strings.ReplaceAll(csv, "c3", "c2")
	r := asked(t, cells(t, csv, 200), constant("c2"))
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if r.Arms[0].Exact < 0.35 || r.Arms[1].Verdict != eval.Undecided || r.Arms[2].Verdict != eval.Undecided || r.Table.Advised != "as-is" {
		t.Errorf("%v, %q, %q, %+v", r.Arms[0].Exact, r.Arms[1].Verdict, r.Arms[2].Verdict, r.Table)
	}
	testkit.Contains(t, "report", text.String(), "no verdict: as-is is not shown to be right more often than the most frequent value")
}

// TestCellsGolden: the report as people see it. Fewer rows than asked for, and rows without an answer, are said.
func TestCellsGolden(t *testing.T) {
	testkit.NotUnderRace(t)
	csv := colours(100, 7) + "no colour,Rome,old,\nno colour,Rome,new,...\n"
	r := asked(t, cells(t, csv, 600), &fakeColumns{sight: 1})
	var text bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if want := testkit.Golden(t, *update, filepath.Join("testdata", "cells.txt"), text.String()); text.String() != want {
		t.Errorf("-update rewrites it\n%s", text.String())
	}
	testkit.Contains(t, "report", text.String(), "100 of 102 rows", "600 rows were to be asked; these are all", "2 rows have no value")
	var again eval.Report
	data, err := json.Marshal(r)
	if err != nil || json.Unmarshal(data, &again) != nil || again.Table.Wanted != 600 || again.Table.Unasked != 2 {
		t.Errorf("%v: %s", err, data)
	}
}

func TestCellsRefuses(t *testing.T) {
	for _, c := range []struct{ csv, ask, want string }{
		{"a,b,c\n1,2,3\n", "d", `column "d": no such column; the table has "a", "b", "c"`},
		{"a,b,c\n", "c", "the table has no rows"},
		{"a,b,c\n1,2,x\n3,4,X!\n", "c", `column "c": all rows have the value "X!", so that there is nothing to ask`},
		{"a,b,c\n1,2,\n3,4,the\n", "c", `column "c": no row has a value to ask for`},
		{"a,b\n1,2\n3,4\n", "b", `column "b": want at least two columns beside it`},
		{"a,b,c\n1,2,3\n1,2\n", "c", "line 3"},
	} {
		_, err := eval.NewCells(t.Context(), openCSV(t, c.csv), eval.CellOptions{Ask: c.ask, Rows: 10})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.csv, err, c.want)
		}
	}
	if _, err := eval.NewCells(t.Context(), openCSV(t, "a,b,c\n1,2,3\n"), eval.CellOptions{Ask: "c"}); err == nil ||
		!strings.Contains(err.Error(), "rows 0") {
		t.Errorf("%v", err)
	}
	run := cells(t, colours(20, 7), 20).Forms[0].Run()
	run.Scorer, run.Cells = constant("x"), run.Cells[:10]
	if _, err := run.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "10 rows, want 20") {
		t.Errorf("%v", err)
	}
}

// TestCellsForms: all forms have the same rows, each with all cells but the hidden one, in the order that the plan of a table without that
// column has; and the estimate counts what no earlier prompt began with.
func TestCellsForms(t *testing.T) {
	testkit.NotUnderRace(t)
	rapid.Check(t, func(r *rapid.T) {
		columns := []string{"a", "b", "c", "d"}
		hidden := rapid.IntRange(0, 3).Draw(r, "hidden")
		cell := rapid.SampledFrom([]string{"x", "y", "xy", "a longer text"})
		answer := rapid.SampledFrom([]string{"q1", "q2", "", "q3"})
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, 4, 4), 2, 5).Draw(r, "rows")
		var all, rest strings.Builder
		all.WriteString("a,b,c,d\n")
		rest.WriteString(strings.Join(without(columns, hidden), ",") + "\n")
		good := 0
		for i, row := range rows {
			if row[hidden] = answer.Draw(r, "answer"); i < 2 {
				row[hidden] = columns[i] + "q"
			}
			if row[hidden] != "" {
				good++
			}
			all.WriteString(strings.Join(row, ",") + "\n")
			rest.WriteString(strings.Join(without(row, hidden), ",") + "\n")
		}
		wanted := rapid.IntRange(1, 6).Draw(r, "wanted")
		o := eval.CellOptions{Ask: columns[hidden], Rows: wanted, Seed: rapid.Uint64().Draw(r, "seed")}
		c, err := eval.NewCells(t.Context(), openCSV(t, all.String()), o)
		if err != nil {
			r.Fatal(err)
		}
		compared := rapid.IntRange(0, 2).Draw(r, "compared")
		for i := range c.Forms {
			form := &c.Forms[i]
			if len(form.Rows) != min(wanted, good) {
				r.Fatalf("%d rows of %d, want %d", len(form.Rows), good, wanted)
			}
			if i == compared { // one of them: planning takes its time
				checkForm(t, r, form, planned(t, r, rest.String(), batch.Order(form.Arm.Cells)), rows, hidden)
			}
			if !slices.Equal(ids(form), ids(&c.Forms[0])) {
				r.Fatalf("rows %v and %v", ids(form), ids(&c.Forms[0]))
			}
			checkEstimate(t, r, form)
		}
	})
}

func without(cells []string, at int) []string { return slices.Delete(slices.Clone(cells), at, at+1) }

func ids(f *eval.Form) (all []string) {
	for _, row := range f.Rows {
		all = append(all, row.ID)
	}
	slices.Sort(all)
	return all
}

// planned are the columns of each row in the plan of a table.
func planned(t *testing.T, r *rapid.T, csv string, order batch.Order) map[string][]string {
	p, err := batch.NewPlan(t.Context(), openCSV(t, csv), batch.Options{Order: order})
	if err != nil {
		r.Fatal(err)
	}
	defer p.Close()
	all := map[string][]string{}
	for q, err := range p.Requests() {
		if err != nil {
			r.Fatal(err)
		}
		for _, row := range append(q.Rows, q.Row) {
			all[fmt.Sprint(row)] = q.Columns
		}
	}
	return all
}

func checkForm(t *testing.T, r *rapid.T, form *eval.Form, plan map[string][]string, rows [][]string, hidden int) {
	t.Helper()
	for k, row := range form.Rows {
		var names []string
		for _, at := range form.Order[k] {
			names = append(names, row.Blocks[at].ID)
		}
		if !slices.Equal(names, plan[row.ID]) {
			r.Fatalf("%s, row %s: %v, planned %v", form.Arm.Name, row.ID, names, plan[row.ID])
		}
		var number int
		_, _ = fmt.Sscan(row.ID, &number)
		var texts []string
		for _, b := range row.Blocks {
			texts = append(texts, strings.TrimSuffix(strings.TrimPrefix(b.Text, b.ID+": "), "\n"))
		}
		if !slices.Equal(texts, without(rows[number], hidden)) || row.Answers[0] != rows[number][hidden] {
			r.Fatalf("row %s: %q, %q; the table has %q", row.ID, texts, row.Answers, rows[number])
		}
	}
}

// checkEstimate counts what is computed of all prompts with a cache without limit, which holds whole cells.
func checkEstimate(t *testing.T, r *rapid.T, form *eval.Form) {
	t.Helper()
	fake := &fakeColumns{}
	run := form.Run()
	run.Scorer, run.MaxTokens = fake, 1
	outcomes, err := run.Do(t.Context())
	if err != nil {
		r.Fatal(err)
	}
	estimate := func(text string) int { return (len(text) + 3) / 4 }
	seen := map[string]bool{}
	for i, o := range outcomes {
		cells, question, _ := strings.Cut(fake.prompts[i], "\n\n")
		var sent strings.Builder
		for _, at := range form.Order[i] {
			sent.WriteString(form.Rows[i].Blocks[at].Text)
		}
		if cells+"\n" != sent.String() || question != form.Rows[i].Question || strings.Contains(cells, form.Rows[i].Answers[0]) {
			r.Fatalf("prompt %q", fake.prompts[i])
		}
		begin, computed := "", 0
		for line := range strings.Lines(cells + "\n") {
			if begin += line; !seen[begin] {
				computed += estimate(line)
			}
			seen[begin] = true
		}
		if computed > 0 {
			computed += estimate(question)
		}
		if got := o.Arms[0].Tokens - o.Arms[0].Expected; got != computed {
			r.Fatalf("%s, row %d: %d tokens computed, want %d", form.Arm.Name, i, got, computed)
		}
	}
}
