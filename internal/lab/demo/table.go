package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// WriteTable prints the result: two lines for each request, totals, and what the blocks' short names stand for.
// Nothing in it depends on the time of day, so on the simulator equal runs print equal tables.
func WriteTable(w io.Writer, r *Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d questions of %d users, %d blocks each, policy %s\n", len(r.Questions), r.users(), r.K, r.Policy)
	fmt.Fprintf(&b, "engine: %s%s\n", r.Engine, r.timesNote())
	b.WriteString("without ragpilot: blocks as retrieved and in full; with: planned. Both: whole history resent, prefix cache on.\n\n")

	rows := make([][]string, 0, 1+2*len(r.Questions))
	rows = append(rows, []string{"user", "turn", "side", "blocks in prompt order (references)", "prompt", "reused", "computed", "TTFT"})
	for i, q := range r.Questions {
		rows = append(rows,
			append([]string{q.User, strconv.Itoa(q.Turn.Turn), "without", r.blocksOf(r.Without[i])}, figures(r.Without[i])...),
			append([]string{"", "", "with", r.blocksOf(r.With[i])}, figures(r.With[i])...))
	}
	align(&b, rows, 4)
	b.WriteByte('\n')
	if !r.Simulated() {
		r.writeAnswers(&b)
		b.WriteByte('\n')
	}
	r.writeTotals(&b)
	b.WriteByte('\n')
	r.writeLegend(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) users() int {
	n := 0
	for _, q := range r.Questions {
		if q.Turn.Turn == 1 {
			n++
		}
	}
	return n
}

// Simulated reports whether the engine that ran was the simulator.
func (r *Result) Simulated() bool { return strings.HasPrefix(r.Engine, "simulator") }

func (r *Result) timesNote() string {
	if r.Simulated() {
		return "; TTFT is its cost model, not a measurement"
	}
	return "; TTFT is measured"
}

// blocksOf lists what was sent: blocks in full, then references in parentheses, then left-outs.
func (r *Result) blocksOf(s Sent) string {
	parts := r.codes(s.Full)
	if len(s.Refs) > 0 {
		parts = append(parts, "("+strings.Join(r.codes(s.Refs), " ")+")")
	}
	for _, code := range r.codes(s.LeftOut) {
		parts = append(parts, "-"+code)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}

func (r *Result) codes(ids []string) []string {
	codes := make([]string, len(ids))
	for i, id := range ids {
		codes[i] = r.code[id]
	}
	return codes
}

func figures(s Sent) []string {
	reused, computed := "unknown", "unknown"
	if s.CachedKnown {
		reused, computed = strconv.Itoa(s.Cached), strconv.Itoa(s.Computed())
	}
	return []string{strconv.Itoa(s.Prompt), reused, computed, millis(s.TTFT)}
}

func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + " ms"
}

func (r *Result) writeTotals(b *strings.Builder) {
	totals := r.totals()
	rows := make([][]string, 0, 1+len(totals))
	rows = append(rows, []string{"total", "without", "with", "change"})
	for _, t := range totals {
		rows = append(rows, []string{t.Name, t.Without, t.With, t.Change})
	}
	align(b, rows, 1)
	b.WriteByte('\n')
	if saving, ok := r.Saving(); ok {
		fmt.Fprintf(b, "Saving: %.1f %% fewer prompt tokens computed than without ragpilot.\n", 100*saving)
	} else {
		b.WriteString("The engine does not say how many prompt tokens came from its cache, so no saving is claimed.\n")
	}
	if n, m := r.rightAnswers(r.Without); m > 0 && !r.Simulated() {
		fmt.Fprintf(b, "Without ragpilot, right answers: %d of %d.\n", n, m)
		n, m = r.rightAnswers(r.With)
		fmt.Fprintf(b, "With ragpilot, right answers: %d of %d.\n", n, m)
	}
	fmt.Fprintf(b, "Mean overlap of consecutive requests: %.1f %%.\n", 100*r.Overlap())
	fmt.Fprintf(b, "Same set of blocks on both sides in %d of %d requests: documents + references + left-outs (%d) = retrieved set.\n",
		len(r.Questions), len(r.Questions), Sum(r.With).LeftOut)
}

// writeAnswers prints what the model said on both sides, each on one line, and whether it is right where that is known.
func (r *Result) writeAnswers(b *strings.Builder) {
	line := func(s string) string { return printable(strings.Join(strings.Fields(s), " "), "") }
	for i, q := range r.Questions {
		fmt.Fprintf(b, "%s: %s\n", printable(q.ID(), ""), line(q.Question))
		if q.Answer == "" {
			fmt.Fprintf(b, "  without: %s\n  with:    %s\n", line(r.Without[i].Answer), line(r.With[i].Answer))
			continue
		}
		verdict := map[bool]string{true: "right", false: "wrong"}
		fmt.Fprintf(b, "  known:          %s\n", line(q.Answer))
		fmt.Fprintf(b, "  without, %s: %s\n", verdict[Right(r.Without[i].Answer, q.Answer)], line(r.Without[i].Answer))
		fmt.Fprintf(b, "  with,    %s: %s\n", verdict[Right(r.With[i].Answer, q.Answer)], line(r.With[i].Answer))
	}
}

func (r *Result) writeLegend(b *strings.Builder) {
	const columns = 5
	var rows [][]string
	for i, x := range r.Blocks {
		if i%columns == 0 {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], x.Code+" "+printable(x.ID, ""))
	}
	align(b, rows, columns)
}

// change returns how much less b is than a.
func change(a, b float64) string {
	if a == 0 {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*(b/a-1))
}

// thousands writes n with a comma between groups of digits.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// align writes rows in columns; those from right on are set flush right.
func align(b *strings.Builder, rows [][]string, right int) {
	var width []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if i >= right {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// printable replaces control characters, which a terminal would obey and which no page may hold. Line feeds and
// tabs stay if they are listed in keep.
func printable(s, keep string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || strings.ContainsRune(keep, r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
