package order_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/ragpilot/ragpilot/batch/internal/order"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// ggr is greedy group recursion (Liu et al., MLSys'25): the value with the largest squared length times repetitions goes first in its
// rows, and both its rows and the others are ordered on. Where nothing is worth a group, or the recursion is too deep, columns are ordered by
// their mean score and rows are sorted. Columns that are mostly distinct stand last.
type ggr struct {
	rows             rows
	stop             int // least worth of a group
	rowStop, colStop int // 0: unlimited
}

// orders returns the columns of every row in prompt order.
func (g ggr) orders() [][]int {
	columns := len(g.rows[0])
	all := indexes(len(g.rows))
	var recurse, last []int
	for _, c := range g.byScore(all, columns, func(_, i int) int { return i }) {
		if g.distinct(c) > 0.7*float64(len(g.rows)) {
			last = append(last, c)
		} else {
			recurse = append(recurse, c)
		}
	}
	out := make([][]int, len(g.rows))
	cells := make([][]int, len(g.rows))
	for r := range cells {
		cells[r] = slices.Clone(recurse)
	}
	g.recurse(all, cells, out, 0, 0)
	for r := range out {
		out[r] = append(out[r], last...)
	}
	return out
}

func (g ggr) distinct(c int) float64 {
	seen := map[string]bool{}
	for _, r := range g.rows {
		seen[r[c]] = true
	}
	return float64(len(seen))
}

// byScore sorts n positions by the mean squared length of their cells times the mean repetition.
func (g ggr) byScore(rs []int, n int, cell func(r, i int) int) []int {
	score := make([]float64, n)
	for i := range n {
		seen, length := map[string]bool{}, 0
		for _, r := range rs {
			v := g.rows[r][cell(r, i)]
			seen[v] = true
			length += len(v)
		}
		mean := float64(length) / float64(len(rs))
		score[i] = mean * mean * (float64(len(rs))/float64(len(seen)) - 1)
	}
	by := indexes(n)
	slices.SortStableFunc(by, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	return by
}

func (g ggr) recurse(rs []int, cells, out [][]int, rowDepth, colDepth int) {
	if len(rs) == 0 || len(cells[rs[0]]) == 0 {
		return
	}
	count := map[string]int{}
	for _, r := range rs {
		for _, c := range cells[r] {
			count[g.rows[r][c]]++
		}
	}
	best, worth := "", 0
	for v, n := range count {
		if w := len(v) * len(v) * (n - 1); w > worth || w == worth && w > 0 && v < best {
			best, worth = v, w
		}
	}
	deep := g.rowStop > 0 && rowDepth >= g.rowStop || g.colStop > 0 && colDepth >= g.colStop
	if deep || worth == 0 || worth < g.stop {
		for _, i := range g.byScore(rs, len(cells[rs[0]]), func(r, i int) int { return cells[r][i] }) {
			for _, r := range rs {
				out[r] = append(out[r], cells[r][i])
			}
		}
		return
	}
	var with, without []int
	for _, r := range rs {
		i := slices.IndexFunc(cells[r], func(c int) bool { return g.rows[r][c] == best })
		if i < 0 {
			without = append(without, r)
			continue
		}
		with = append(with, r)
		out[r] = append(out[r], cells[r][i])
		cells[r] = slices.Delete(cells[r], i, i+1)
	}
	g.recurse(with, cells, out, rowDepth, colDepth+1)
	g.recurse(without, cells, out, rowDepth+1, colDepth)
}

// saved is what prompts in these orders save.
func saved(s rows, orders [][]int) int64 {
	var prompts []string
	total := int64(0)
	for r, by := range orders {
		p := ""
		for _, c := range by {
			p += s[r][c]
		}
		prompts = append(prompts, p)
		total += int64(len(p))
	}
	slices.Sort(prompts)
	before := ""
	for _, p := range prompts {
		total -= int64(len(p) - prefix(before, p))
		before = p
	}
	return total
}

// family draws tables of one kind.
type family struct {
	name string
	row  func(rnd *rand.Rand, i, n int) []string
}

func zipf(rnd *rand.Rand, n int) int { f := rnd.Float64(); return int(float64(n) * f * f * f) }

func words(seed, n int) string {
	rnd := rand.New(rand.NewPCG(uint64(seed), 3))
	s := ""
	for range n {
		s += string(rune('a'+rnd.IntN(26))) + string("aeiou"[rnd.IntN(5)]) + string(rune('a'+rnd.IntN(26))) + " "
	}
	return s
}

var families = []family{
	{"decimals", func(rnd *rand.Rand, _, _ int) []string {
		return []string{
			fmt.Sprintf("%.1f", rnd.Float64()*20), fmt.Sprintf("%.2f", rnd.Float64()*5), fmt.Sprintf("%.1f", rnd.NormFloat64()*3),
			fmt.Sprint(rnd.IntN(3)),
		}
	}},
	{"digits", func(rnd *rand.Rand, _, _ int) []string {
		out := make([]string, 8)
		for i := range out {
			out[i] = fmt.Sprint(rnd.IntN(10))
		}
		return out
	}},
	{"integers", func(rnd *rand.Rand, i, _ int) []string {
		return []string{
			fmt.Sprint(i), fmt.Sprint(rnd.IntN(1000)), fmt.Sprint(rnd.IntN(100000)), fmt.Sprint(1900 + rnd.IntN(120)),
			fmt.Sprint(rnd.IntN(12)),
		}
	}},
	{"dates", func(rnd *rand.Rand, i, n int) []string {
		d := i * 700 / n
		return []string{
			fmt.Sprintf("2024-%02d-%02d", d/30%12+1, d%30+1), fmt.Sprintf("%02d:%02d", rnd.IntN(24), rnd.IntN(60)),
			fmt.Sprintf("%02d/%02d/2023", rnd.IntN(12)+1, rnd.IntN(28)+1), words(zipf(rnd, 30), 2),
		}
	}},
	{"hierarchy", func(rnd *rand.Rand, i, _ int) []string {
		c := zipf(rnd, 200)
		return []string{
			fmt.Sprint("order ", i), words(c, 3), words(1000+c%30, 2), words(2000+c%5, 2), fmt.Sprint("sku-", zipf(rnd, 90)),
			fmt.Sprintf("%.2f", rnd.Float64()*100),
		}
	}},
	{"zipf", func(rnd *rand.Rand, _, _ int) []string {
		out := make([]string, 6)
		for k := range out {
			out[k] = words(k*100+zipf(rnd, 10*(k+1)), 1+k%3)
		}
		return out
	}},
	{"texts", func(rnd *rand.Rand, i, n int) []string {
		m := zipf(rnd, n/4+1)
		return []string{"id" + fmt.Sprint(m), words(m, 40), words(5000+i, 15), fmt.Sprint(rnd.IntN(5), "/5")}
	}},
	{"flags", func(rnd *rand.Rand, i, _ int) []string {
		out := []string{fmt.Sprint(i)}
		for range 12 {
			out = append(out, []string{"true", "false", ""}[zipf(rnd, 3)])
		}
		return out
	}},
	{"sparse", func(rnd *rand.Rand, i, _ int) []string {
		out := make([]string, 10)
		for k := range 3 {
			out[(k*7+rnd.IntN(10))%10] = words(zipf(rnd, 25), 1)
		}
		out[0] = fmt.Sprint(i)
		return out
	}},
	{"people", func(rnd *rand.Rand, i, _ int) []string {
		earned := float64(zipf(rnd, 800)) * 0.24038462
		return []string{
			fmt.Sprint(i + 1), fmt.Sprint(29 + rnd.IntN(2)), []string{"male", "male", "female"}[rnd.IntN(3)], fmt.Sprintf("%.9g", earned),
			fmt.Sprint(12 + zipf(rnd, 8)),
		}
	}},
	{"wide", func(rnd *rand.Rand, _, _ int) []string {
		c := rnd.IntN(12)
		out := make([]string, 25)
		for k := range out {
			out[k] = fmt.Sprint((c*(k+3))%(k+2), ".", zipf(rnd, 4))
		}
		return out
	}},
}

// settingsOfGGR are the two of the published benchmark, and one without bounds.
var settingsOfGGR = []ggr{{stop: 100_000, rowStop: 4, colStop: 2}, {rowStop: 4, colStop: 2}, {}}

// TestAheadOfGreedyGroupRecursion compares plans with those of the published benchmark's algorithm, which sees values, in both forms of
// prompts.
func TestAheadOfGreedyGroupRecursion(t *testing.T) {
	testkit.NotUnderRace(t)
	sizes := []int{20, 100, 1000}
	if testing.Short() {
		sizes = sizes[:2]
	}
	if os.Getenv("RAGPILOT_ORDER_GGR") != "" {
		sizes = []int{5, 10, 20, 50, 100, 200, 500, 1000, 3000}
	}
	for _, f := range families {
		for _, n := range sizes {
			rnd := rand.New(rand.NewPCG(uint64(n), 11))
			values := make(rows, n)
			var columns []string
			for i := range n {
				values[i] = f.row(rnd, i, n)
			}
			for c := range values[0] {
				columns = append(columns, fmt.Sprint("column", c))
			}
			againstGGR(t, fmt.Sprintf("%s, %d rows", f.name, n), columns, values, order.Options{Effort: 20_000 * n})
		}
	}
}

// TestAheadOnTables does the same with the CSV files in the folder that RAGPILOT_ORDER_TABLES names, up to 60,000 cells of each.
// RAGPILOT_ORDER_EFFORT is an [order.Options].Effort.
func TestAheadOnTables(t *testing.T) {
	dir := os.Getenv("RAGPILOT_ORDER_TABLES")
	if dir == "" {
		t.Skip("RAGPILOT_ORDER_TABLES names no folder of tables")
	}
	effort, _ := strconv.Atoi(os.Getenv("RAGPILOT_ORDER_EFFORT"))
	files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d tables in %s, %v", len(files), dir, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil || len(all) < 2 {
			t.Errorf("%s: %d lines, %v", name, len(all), err)
			continue
		}
		values := rows(all[1:min(len(all), 1+max(1, 60_000/len(all[0])))])
		againstGGR(t, filepath.Base(name), all[0], values, order.Options{Effort: effort})
	}
}

// againstGGR compares the plan of a table with the best of greedy group recursion.
func againstGGR(t *testing.T, name string, columns []string, values rows, o order.Options) {
	t.Helper()
	labelled, total := make(rows, len(values)), [2]int64{}
	for i, row := range values {
		for c, v := range row {
			labelled[i] = append(labelled[i], fmt.Sprintf("%s: %s\n", columns[c], v))
			total[0] += int64(len(v))
			total[1] += int64(len(labelled[i][c]))
		}
	}
	for form, s := range []rows{values, labelled} {
		best := int64(0)
		for _, g := range settingsOfGGR {
			g.rows = values
			best = max(best, saved(s, g.orders()))
		}
		p, err := order.New(context.Background(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Totals.Saved
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%-20s form %d: saved %.4f, greedy group recursion %.4f", name, form,
			float64(got)/float64(total[form]), float64(best)/float64(total[form]))
		if got < best {
			t.Errorf("%s, form %d: saved %d bytes, greedy group recursion %d", name, form, got, best)
		}
	}
}
