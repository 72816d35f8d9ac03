package eval

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/ragpilot/ragpilot/internal/lab/plot"
)

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	fmt.Fprintf(w, "model: %s\n", r.Header.Scorer)
	if r.Table != nil {
		r.Table.text(w, r.Rows)
	} else {
		fmt.Fprintf(w, "%d rows in %d conversations, %d of them later turns; every arm is compared with %s, row by row\n", r.Rows,
			r.Conversations, r.LaterTurns, Plain)
	}
	fmt.Fprintf(w, "differences with %.0f %% intervals (%d resamples of %s; of exact match Tango's score interval, too, and the "+
		"wider bounds of both); margin %.1f points of exact match",
		100*r.Confidence, r.Settings.Resamples, r.unit(), 100*r.Settings.Margin)
	if r.likelihoods() {
		fmt.Fprintf(w, ", %.3f nats of NLL", r.Settings.NLLMargin)
	}
	fmt.Fprint(w, "\n\n")
	if err := r.quality(w); err != nil {
		return err
	}
	if exact := r.Arms[0].Exact; exact < MinExact {
		fmt.Fprintf(w, "no verdict: %s is right in %s %% of the rows, so that hardly anything can be lost; want %.0f %%\n", r.Arms[0].Name,
			percent(exact), 100*MinExact)
	}
	if r.Conversations < MinGroups {
		fmt.Fprintf(w, "no verdict: %d %s are too few for intervals; want %d\n", r.Conversations, r.unit(), MinGroups)
	}
	if r.Table != nil {
		return r.cells(w)
	}
	fmt.Fprintln(w)
	if 0 < r.LaterTurns && r.LaterTurns < r.Rows {
		if err := r.turns(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if err := r.prompts(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := r.ranks(w); err != nil {
		return err
	}
	if o := r.Orders; o != nil {
		fmt.Fprintf(w, "\nrandom orders: %d; exact match from %s to %s %%, in the mean %s points against %s; %s %% of the rows are right in "+
			"some orders and wrong in others\n",
			o.N, percent(o.Min), percent(o.Max), points(o.Diff), Plain, percent(o.Unstable))
	}
	if p := r.Reading; p != nil {
		fmt.Fprintf(w, "\nthe block with the answer at %d places, the others as retrieved: exact match at the last %s points against the first\n",
			len(p.Exact), points(p.Last))
	}
	fmt.Fprintln(w)
	return r.power(w)
}

// unit is what is drawn as one in a resample.
func (r *Report) unit() string {
	if r.Table != nil {
		return "rows"
	}
	return "conversations"
}

func (r *Report) likelihoods() bool {
	return slices.ContainsFunc(r.Arms, func(a ArmReport) bool { return a.NLL != nil })
}

func (r *Report) quality(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "arm\texact %\tcontained %\tF1 %\tΔ exact, points\tgains\tlosses\t")
	if r.likelihoods() {
		fmt.Fprint(w, "NLL\tΔ NLL\t")
	}
	if r.Arms[0].KL != nil {
		fmt.Fprint(w, "KL\t")
	}
	fmt.Fprintln(w, "verdict\t")
	for _, a := range r.Arms {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t", a.Name, percent(a.Exact), percent(a.Contains), percent(a.F1))
		if d := a.ExactDiff; d != nil {
			fmt.Fprintf(w, "%s\t%d\t%d\t", points(d.Bounds()), d.Gains, d.Losses)
		} else {
			fmt.Fprint(w, "\t\t\t")
		}
		if r.likelihoods() {
			fmt.Fprintf(w, "%s\t", nats(a.NLL))
			if d := a.NLLDiff; d != nil {
				fmt.Fprintf(w, "%+.4f [%+.4f, %+.4f]\t", d.Mean, d.Low, d.High)
			} else {
				fmt.Fprint(w, "\t")
			}
		}
		if r.Arms[0].KL != nil {
			fmt.Fprintf(w, "%s\t", nats(a.KL))
		}
		fmt.Fprintf(w, "%s\t\n", a.Verdict)
	}
	return w.Flush()
}

// turns shows the differences of first and of later turns: a verdict is about the run's mix of both.
func (r *Report) turns(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	parts := []string{fmt.Sprintf("%d first turns", r.Rows-r.LaterTurns), fmt.Sprintf("%d later turns", r.LaterTurns)}
	fmt.Fprint(w, "difference in\t")
	for _, part := range parts {
		fmt.Fprintf(w, "%s: Δ exact, points\t", part)
		if r.likelihoods() {
			fmt.Fprint(w, "Δ NLL\t")
		}
	}
	fmt.Fprintln(w)
	for _, a := range r.Arms[1:] {
		fmt.Fprintf(w, "%s\t", a.Name)
		for _, p := range a.Turns {
			fmt.Fprintf(w, "%s\t", points(*p.ExactDiff))
			if p.NLLDiff != nil {
				fmt.Fprintf(w, "%+.4f [%+.4f, %+.4f]\t", p.NLLDiff.Mean, p.NLLDiff.Low, p.NLLDiff.High)
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func (r *Report) prompts(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "arm\tas %s %%\treordered %%\tplaces moved\torder note %%\treferences %%\techoes %%\tprompt tokens\tcomputed\tof %s's\t\n",
		Plain, Plain)
	for _, a := range r.Arms {
		l := a.Layouts
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%s\t%s\t%s\t%d\t%d\t%s %%\t\n", a.Name, percent(l.Same), percent(l.Reordered), l.Moved,
			percent(l.Hints), percent(l.Refs), percent(l.Echoes),
			l.Tokens, l.Computed, percent(float64(l.Computed)/max(1, float64(r.Arms[0].Layouts.Computed))))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "tokens are estimated; computed: what the pilot does not expect in a cache without limit")
	return err
}

func (r *Report) ranks(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "exact % where\tfirst turn\tlater turn\t")
	plain := r.Arms[0]
	for rank := range plain.Ranks {
		if rank > 0 {
			fmt.Fprintf(w, "rank %d\t", rank)
		} else if plain.Ranks[0].Rows > 0 {
			fmt.Fprint(w, "no rank\t")
		}
	}
	fmt.Fprint(w, "\nrows\t")
	for _, p := range r.parts(&plain) {
		fmt.Fprintf(w, "%d\t", p.Rows)
	}
	fmt.Fprintln(w)
	for i := range r.Arms {
		fmt.Fprintf(w, "%s\t", r.Arms[i].Name)
		for _, p := range r.parts(&r.Arms[i]) {
			if p.Rows == 0 {
				fmt.Fprint(w, "\t")
			} else {
				fmt.Fprintf(w, "%s\t", percent(p.Exact))
			}
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "rank: the retriever's, of the first block that has the answer")
	return err
}

// parts are an arm's columns: two kinds of turns, then ranks; rows without a rank only if there are some.
func (r *Report) parts(a *ArmReport) []Part {
	parts := slices.Clone(a.Turns)
	for len(parts) < 2 {
		parts = append(parts, Part{})
	}
	ranks := a.Ranks
	if ranks[0].Rows == 0 {
		ranks = ranks[1:]
	}
	return append(parts, ranks...)
}

func (r *Report) power(out io.Writer) error {
	fmt.Fprintf(out, "rows needed to exclude a loss of %.1f points with 80 %% power, if there is none:\n", 100*r.Settings.Margin)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "right in one arm only\trows\tpower of %d rows\t\t\n", r.Rows)
	likely := slices.IndexFunc(r.Needed, func(n Needed) bool { return n.NLL > 0 })
	if likely < 0 {
		likely = len(r.Needed)
	}
	for _, n := range r.Needed[:likely] {
		seen := "assumed"
		if n.Observed != "" {
			seen = "seen in " + n.Observed
		}
		fmt.Fprintf(w, "%s %%\t%d\t%s %%\t%s\t\n", percent(n.Discordance), n.Rows, percent(n.Power), seen)
	}
	if err := w.Flush(); err != nil || likely == len(r.Needed) {
		return err
	}
	fmt.Fprintf(out, "\nand to exclude a rise of %.3f nats:\n", r.Settings.NLLMargin)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "deviation of a row's Δ NLL\trows\tpower of %d rows\t\t\n", r.Rows)
	for _, n := range r.Needed[likely:] {
		fmt.Fprintf(w, "%.3f\t%d\t%s %%\tseen in %s\t\n", n.NLL, n.Rows, percent(n.Power), n.Observed)
	}
	return w.Flush()
}

func percent(share float64) string { return fmt.Sprintf("%.1f", 100*share) }

func points(i Interval) string {
	return fmt.Sprintf("%+.1f [%+.1f, %+.1f]", 100*i.Mean, 100*i.Low, 100*i.High)
}

func nats(x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%.4f", *x)
}

// Colour-blind readers can distinguish the colours of verdicts.
var verdictColours = map[Verdict]string{NotInferior: "#0072b2", Undecided: "#8a6d00", Inferior: "#d55e00"}

// Plot draws the differences to plain with their intervals, and the margins, as SVG.
func (r *Report) Plot() []byte {
	plain, title := r.Arms[0].Name, "Answer quality against retrieval order"
	if r.Table != nil {
		title = "Answer quality against the order of the table"
	}
	exact := plot.Panel{Name: "difference of exact match to " + plain + ", points (right is better)", Margin: -100 * r.Settings.Margin}
	nll := plot.Panel{Name: "difference of answer NLL to " + plain + ", nats per token (left is better)", Margin: r.Settings.NLLMargin}
	add := func(p *plot.Panel, name string, scale float64, d *Difference) {
		if d != nil {
			i := d.Bounds()
			p.Bars = append(p.Bars, plot.Bar{
				Name: name, Mean: scale * i.Mean, Low: scale * i.Low, High: scale * i.High,
				Colour: verdictColours[d.Verdict], Verdict: string(d.Verdict),
			})
		}
	}
	for i := range r.Arms {
		a := &r.Arms[i]
		add(&exact, a.Name, 100, a.ExactDiff)
		add(&nll, a.Name, 1, a.NLLDiff)
	}
	panels := []plot.Panel{exact}
	if len(nll.Bars) > 0 {
		panels = append(panels, nll)
	}
	note := fmt.Sprintf("%s; %d rows, paired, %.0f %% intervals; dashed: the margin", r.Header.Scorer, r.Rows, 100*r.Confidence)
	return plot.Intervals(title, note, panels)
}
