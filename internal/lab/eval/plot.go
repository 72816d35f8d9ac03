package eval

import (
	"fmt"

	"github.com/ragpilot/ragpilot/internal/lab/plot"
)

// Colour-blind readers can distinguish the colours of verdicts.
var verdictColours = map[Verdict]string{NotInferior: "#0072b2", Undecided: "#8a6d00", Inferior: "#d55e00"}

// Plot draws the differences to plain with their intervals, and the margins, as SVG.
func (r *Report) Plot() []byte {
	exact := plot.Panel{Name: "difference of exact match to plain, points (right is better)", Margin: -100 * r.Settings.Margin}
	nll := plot.Panel{Name: "difference of answer NLL to plain, nats per token (left is better)", Margin: r.Settings.NLLMargin}
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
	return plot.Intervals("Answer quality against retrieval order", note, panels)
}
