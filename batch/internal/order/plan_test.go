package order_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/batch/internal/order"
)

// rows is a source in memory.
type rows [][]string

func (s rows) Rows() iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for _, r := range s {
			if !yield(slices.Clone(r), nil) {
				return
			}
		}
	}
}

// failing is a source that ends with an error.
type failing struct {
	rows
	err error
}

func (s failing) Rows() iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for r, err := range s.rows.Rows() {
			if !yield(r, err) {
				return
			}
		}
		yield(nil, s.err)
	}
}

// requests reads a plan.
func requests(t require, p *order.Plan) []order.Request {
	t.Helper()
	var out []order.Request
	for q, err := range p.Requests() {
		if err != nil {
			t.Fatalf("read the plan: %v", err)
		}
		out = append(out, q)
	}
	return out
}

type require interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkPlan compares a plan with what it says about itself, byte for byte.
func checkPlan(t require, s rows, mode order.Columns, p *order.Plan) {
	t.Helper()
	var prompts []string
	answered := make([]bool, len(s))
	var total, saved int64
	for i, q := range requests(t, p) {
		for k, r := range q.Rows {
			if answered[r] {
				t.Fatalf("request %d: row %d was answered before", i, r)
			}
			answered[r] = true
			if !slices.Equal(s[r], s[q.Row]) {
				t.Fatalf("request %d: row %d is not equal to row %d", i, r, q.Row)
			}
			for _, u := range s[r] {
				total += int64(len(u))
				if k > 0 {
					saved += int64(len(u))
				}
			}
		}
		if q.Rows[0] != q.Row || !slices.IsSorted(q.Rows) {
			t.Fatalf("request %d: row %d, rows %v", i, q.Row, q.Rows)
		}
		prompt := text(t, s[q.Row], q.Order)
		best := 0
		for _, earlier := range prompts {
			best = max(best, prefix(prompt, earlier))
		}
		if q.Shared != best {
			t.Fatalf("request %d: shared %d, want %d", i, q.Shared, best)
		}
		saved += int64(best)
		prompts = append(prompts, prompt)
		if mode == order.AsIs && !slices.IsSorted(q.Order) {
			t.Fatalf("request %d: order %v", i, q.Order)
		}
		if mode == order.Fixed && i > 0 && !slices.Equal(q.Order, first(p).Order) {
			t.Fatalf("request %d: order %v, but %v before", i, q.Order, first(p).Order)
		}
	}
	if i := slices.Index(answered, false); i >= 0 {
		t.Fatalf("row %d is missing", i)
	}
	want := order.Totals{
		Rows: len(s), Requests: len(prompts), Bytes: total, Saved: saved, FileOrder: fileOrder(s), Bound: p.Totals.Bound,
	}
	if p.Totals != want {
		t.Fatalf("totals %+v, want %+v", p.Totals, want)
	}
	if saved < want.FileOrder || want.Bound < saved {
		t.Fatalf("totals %+v: want FileOrder <= Saved <= Bound", want)
	}
}

func first(p *order.Plan) order.Request {
	for q, err := range p.Requests() {
		if err != nil {
			return order.Request{}
		}
		return q
	}
	return order.Request{}
}

// text writes a prompt, whose order must be a permutation.
func text(t require, units []string, by []int) string {
	t.Helper()
	if sorted := slices.Sorted(slices.Values(by)); len(by) != len(units) || !slices.Equal(sorted, indexes(len(units))) {
		t.Fatalf("order %v of %d units", by, len(units))
	}
	var b strings.Builder
	for _, at := range by {
		b.WriteString(units[at])
	}
	return b.String()
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func prefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// fileOrder is what prompts save in the order of the file.
func fileOrder(s rows) int64 {
	var saved int64
	var prompts []string
	for _, r := range s {
		prompt := strings.Join(r, "")
		best := 0
		for _, earlier := range prompts {
			best = max(best, prefix(prompt, earlier))
		}
		saved += int64(best)
		prompts = append(prompts, prompt)
	}
	return saved
}

var modes = []order.Columns{order.PerRow, order.Fixed, order.AsIs}

// drawTable draws rows with alike and equal cells, with repeated texts, empty cells and, unless fixed, rows of unlike lengths.
func drawTable(t *rapid.T, fixed bool) rows {
	cell := rapid.OneOf(rapid.StringMatching(`[ab]{0,3}`), rapid.StringMatching(`[a-c]: [0-9]{1,3}\n`))
	columns := rapid.IntRange(0, 5).Draw(t, "columns")
	out := make(rows, rapid.IntRange(0, 40).Draw(t, "rows"))
	for i := range out {
		n := columns
		if !fixed {
			n = rapid.IntRange(0, columns).Draw(t, "units")
		}
		out[i] = rapid.SliceOfN(cell, n, n).Draw(t, "row")
	}
	return out
}

func TestPlansAreWhatTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom(modes).Draw(t, "mode")
		s := drawTable(t, mode == order.Fixed)
		o := order.Options{Columns: mode, Effort: rapid.SampledFrom([]int{-1, 2_000, 50_000}).Draw(t, "effort")}
		p, err := order.New(context.Background(), s, o)
		if err != nil {
			t.Fatalf("plan: %v", err)
		}
		checkPlan(t, s, mode, p)
		if err := p.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	})
}

func TestPlansAreDeterministic(t *testing.T) {
	var s rows
	for i := range 300 {
		s = append(s, []string{fmt.Sprint("a", i%7), fmt.Sprint("b", i%11), fmt.Sprint("c", i*i%31)})
	}
	for _, mode := range modes {
		var before []order.Request
		for range 3 {
			p, err := order.New(context.Background(), s, order.Options{Columns: mode, Effort: 300_000})
			if err != nil {
				t.Fatal(err)
			}
			got := requests(t, p)
			if before != nil && fmt.Sprint(got) != fmt.Sprint(before) {
				t.Fatalf("%s: plans differ", mode)
			}
			before = got
		}
	}
}

func TestErrorsOfTheSourceAreReturned(t *testing.T) {
	broken := errors.New("line 3: broken")
	_, err := order.New(context.Background(), failing{rows{{"a"}, {"b"}}, broken}, order.Options{})
	if !errors.Is(err, broken) {
		t.Fatalf("error %v, want %v", err, broken)
	}
}

func TestCancelledContextEndsPlanning(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := order.New(ctx, rows{{"a"}, {"b"}}, order.Options{})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want %v", err, context.Canceled)
	}
}

func TestFixedWantsRowsOfOneLength(t *testing.T) {
	_, err := order.New(context.Background(), rows{{"a", "b"}, {"a"}}, order.Options{Columns: order.Fixed})
	if err == nil {
		t.Fatal("no error")
	}
}

func TestUnknownModeIsAnError(t *testing.T) {
	if _, err := order.New(context.Background(), rows{}, order.Options{Columns: "sideways"}); err == nil {
		t.Fatal("no error")
	}
}
