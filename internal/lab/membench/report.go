package membench

import (
	"fmt"
	"io"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/plot"
)

// Report is what a benchmark has found.
type Report struct {
	// Source says where the data come from.
	Source string `json:"source"`
	Users  int    `json:"users"`
	// Pairs and Disjoint are those of [Data].
	Pairs    int        `json:"pairs,omitempty"`
	Disjoint int        `json:"disjoint,omitempty"`
	Recall   []Recalled `json:"recall"`
	Prompts  []Prompted `json:"prompts"`
}

// Write prints tables.
func (r *Report) Write(out io.Writer) error {
	fmt.Fprintf(out, "%s; %d users\n", r.Source, r.Users)
	if r.Pairs > 0 {
		fmt.Fprintf(out, "%d of %d pairs of question and fact (%s) have no content stem in common\n", r.Disjoint, r.Pairs,
			percent(float64(r.Disjoint)/float64(r.Pairs)))
	}
	w := figures.LeftTable(out)
	fmt.Fprintln(w, "\nSTORE\tEMBEDDER\tMOMENT\tQUESTIONS\tRECALL@1\t@3\t@5\tNO STEM IN COMMON\t@1\t@5\tNEWEST FIRST\tDELETED "+
		"FOUND\tOTHERS' FOUND")
	for i := range r.Recall {
		for _, s := range r.Recall[i].Stages {
			newest := "-"
			if s.Updated > 0 {
				newest = percent(s.NewestFirst)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%d\t%d\n", r.Recall[i].Store, r.Recall[i].Embedder, s.Name, s.Questions,
				percent(s.At1), percent(s.At3), percent(s.At5), s.Disjoint, percent(s.DisjointAt1), percent(s.DisjointAt5), newest, s.Deleted,
				s.Foreign)
		}
		if lost, ok := r.Recall[i].lost(); ok {
			fmt.Fprintf(w, "%s\t%s\tlost by use, points\t\t%+.1f\t%+.1f\t%+.1f\t\t\t\t\t\t\n", r.Recall[i].Store, r.Recall[i].Embedder, lost[0],
				lost[1], lost[2])
		}
	}
	fmt.Fprintln(w, "\nSTORE\tEMBEDDER\tADD P50\tP99\tSEARCH P50\tP99")
	for _, t := range r.Recall {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.Store, t.Embedder, short(t.Add.P50), short(t.Add.P99), short(t.Search.P50),
			short(t.Search.P99))
	}
	for i := range r.Prompts {
		r.Prompts[i].write(w)
	}
	return w.Flush()
}

// lost is how many points recall at 1, 3 and 5 change by the chat.
func (r *Recalled) lost() (points [3]float64, ok bool) {
	if len(r.Stages) < 2 || r.Stages[len(r.Stages)-1].Name != stageUsed {
		return points, false
	}
	before, after := r.Stages[len(r.Stages)-2], r.Stages[len(r.Stages)-1]
	return [3]float64{100 * (after.At1 - before.At1), 100 * (after.At3 - before.At3), 100 * (after.At5 - before.At5)}, true
}

func (p *Prompted) write(w io.Writer) {
	fmt.Fprintf(w, "\nprompts of the chat: embedder %s, k = %d, tokens a turn; small cache: %d tokens\n", p.Embedder, p.K, p.Cache)
	answers := ""
	if p.Model != "" {
		fmt.Fprintf(w, "answers of %s; one is right if it says the value that was asked for\n", p.Model)
		answers = "\tANSWERS RIGHT\tOF\tPROMPTS TOO LONG"
	}
	fmt.Fprintln(w, "PROMPT\tTURNS\tTOKENS\tCOMPUTED\tWITH SMALL CACHE\tASKING\tFACT IN PROMPT"+answers)
	for _, a := range p.Arms {
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.0f\t%d\t%s", a.Name, a.Turns, a.Prompt, a.Computed, a.ComputedSmall, a.Asking, percent(a.Held))
		if answers != "" {
			fmt.Fprintf(w, "\t%s\t%d\t%d", percent(a.Right), a.Answered, a.TooLong)
		}
		fmt.Fprintln(w)
	}
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// short writes a duration in milliseconds.
func short(d time.Duration) string { return fmt.Sprintf("%.2f ms", figures.Millis(d)) }

// Chart draws quality against computed prompt tokens as SVG, one mark for each arm and cache. Quality is the share of right
// answers if a model has answered, and otherwise that of the needed facts that stood in the prompts.
func (p *Prompted) Chart() []byte {
	c := plot.Chart{
		Title: "Agent memory: quality against computed prompt tokens", X: "computed prompt tokens a turn (left is better)",
		Note: fmt.Sprintf("embedder %s, k = %d; full: a cache without a limit, hollow: one of %d tokens", p.Embedder, p.K, p.Cache),
		Y:    "turns with the needed fact in the prompt, %", Top: 100,
	}
	if p.Model != "" {
		c.Note += "; answers of " + p.Model
		c.Y = "right answers, %"
	}
	for _, a := range p.Arms {
		quality := 100 * a.Held
		if p.Model != "" {
			quality = 100 * a.Right
		}
		c.Add(a.Name, plot.Mark{X: a.Computed, Y: quality})
		c.Add(a.Name, plot.Mark{X: a.ComputedSmall, Y: quality, Hollow: true})
	}
	return c.SVG()
}
