package demo

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html.tmpl
var pageTemplate string

// page is what the template prints. All geometry is worked out here, so that the template has no arithmetic.
type page struct {
	Result   *Result
	Times    string // what kind of times these are
	Totals   []totalRow
	Saving   string // "" if none can be claimed
	Overlap  string
	Chart    chart
	Examples []example
	Rows     []pageRow
	Blocks   []BlockInfo
}

type totalRow struct{ Name, Without, With, Change string }

// pageRow is one request as text.
type pageRow struct {
	User, Question string
	Turn           int
	Without, With  pageSide
}

type pageSide struct{ Blocks, Prompt, Reused, Computed, TTFT string }

// WritePage writes the result as one HTML file with pictures in it that needs nothing else: no scripts, no other
// files. All text in it is escaped, whatever the documents hold.
func WritePage(w io.Writer, r *Result) error {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("page template: %w", err)
	}
	return t.Execute(w, r.page())
}

func (r *Result) page() page {
	p := page{
		Result: r, Times: "measured", Totals: r.totals(), Overlap: fmt.Sprintf("%.1f %%", 100*r.Overlap()),
		Chart: r.chart(), Examples: r.examples(),
	}
	if r.Simulated() {
		p.Times = "simulated"
	}
	if saving, ok := r.Saving(); ok {
		p.Saving = fmt.Sprintf("%.1f %%", 100*saving)
	}
	for i, q := range r.Questions {
		p.Rows = append(p.Rows, pageRow{
			User: q.User, Turn: q.Turn.Turn, Question: printable(q.Question, ""),
			Without: r.side(r.Without[i]), With: r.side(r.With[i]),
		})
	}
	for _, b := range r.Blocks {
		p.Blocks = append(p.Blocks, BlockInfo{Code: b.Code, ID: printable(b.ID, ""), Title: printable(b.Title, "")})
	}
	return p
}

func (r *Result) side(s Sent) pageSide {
	f := figures(s)
	return pageSide{Blocks: r.blocksOf(s), Prompt: f[0], Reused: f[1], Computed: f[2], TTFT: f[3]}
}

// totals are the rows of the table of sums, for the terminal and for the page.
func (r *Result) totals() []totalRow {
	without, with := Sum(r.Without), Sum(r.With)
	known := without.CachedKnown && with.CachedKnown
	kind := "mean TTFT (measured)"
	if r.Simulated() {
		kind = "mean TTFT (simulated)"
	}
	reused := totalRow{"reused from the cache", "unknown", "unknown", ""}
	computed := totalRow{"computed prompt tokens", "unknown", "unknown", ""}
	if known {
		reused = totalRow{reused.Name, thousands(without.Cached), thousands(with.Cached), ""}
		computed = totalRow{
			computed.Name, thousands(without.Computed), thousands(with.Computed),
			change(float64(without.Computed), float64(with.Computed)),
		}
	}
	return []totalRow{
		{"prompt tokens", thousands(without.Prompt), thousands(with.Prompt), change(float64(without.Prompt), float64(with.Prompt))},
		reused, computed,
		{kind, millis(without.TTFT), millis(with.TTFT), change(float64(without.TTFT), float64(with.TTFT))},
		{"references", thousands(without.Refs), thousands(with.Refs), ""},
		{"requests reordered", thousands(without.Reordered), thousands(with.Reordered), ""},
	}
}
