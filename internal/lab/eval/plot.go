package eval

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
)

// Sizes of the picture in pixels.
const (
	plotWidth  = 760
	plotLeft   = 150
	plotRight  = 170
	rowHeight  = 26
	panelTop   = 30 // above the first arm of a panel
	panelBelow = 52 // for axis and its name
	headHeight = 56
)

// verdictColours are told apart by colour-blind readers too.
var verdictColours = map[Verdict]string{NotInferior: "#0072b2", Undecided: "#8a6d00", Inferior: "#d55e00"}

// panel is one quantity: a line with an interval for each arm.
type panel struct {
	name   string
	scale  float64 // values are multiplied by it
	margin float64 // scaled, with its sign: where a loss begins to matter
	bars   []bar
}

type bar struct {
	name    string
	at      Interval // scaled
	verdict Verdict
}

// Plot draws the differences to plain with their intervals, and the margins, as SVG.
func (r *Report) Plot() []byte {
	exact := panel{name: "difference of exact match to plain, points (right is better)", scale: 100, margin: -100 * r.Settings.Margin}
	nll := panel{name: "difference of answer NLL to plain, nats per token (left is better)", scale: 1, margin: r.Settings.NLLMargin}
	for i := range r.Arms {
		a := &r.Arms[i]
		exact.add(a.Name, a.ExactDiff)
		nll.add(a.Name, a.NLLDiff)
	}
	panels := []panel{exact}
	if len(nll.bars) > 0 {
		panels = append(panels, nll)
	}
	height := headHeight
	for _, p := range panels {
		height += p.height()
	}
	var b bytes.Buffer
	title := "Answer quality against retrieval order"
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" role="img" aria-label="%s">`+"\n",
		plotWidth, height, plotWidth, height, title)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", plotWidth, height)
	fmt.Fprintf(&b, `<text x="12" y="22" font-size="15" fill="#111">%s</text>`+"\n", title)
	fmt.Fprintf(&b, `<text x="12" y="40" font-size="11" fill="#555">%s</text>`+"\n",
		escape(fmt.Sprintf("%s; %d rows, paired, %.0f %% intervals; dashed: the margin", r.Header.Scorer, r.Rows, 100*r.Confidence)))
	top := headHeight
	for _, p := range panels {
		p.draw(&b, top)
		top += p.height()
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p *panel) add(name string, d *Difference) {
	if d != nil {
		i := d.Bounds()
		p.bars = append(p.bars, bar{name, Interval{p.scale * i.Mean, p.scale * i.Low, p.scale * i.High}, d.Verdict})
	}
}

func (p *panel) height() int { return panelTop + rowHeight*len(p.bars) + panelBelow }

// reach is the largest value that must fit, on both sides of 0.
func (p *panel) reach() float64 {
	reach := math.Abs(p.margin) * 1.25
	for _, b := range p.bars {
		reach = max(reach, math.Abs(b.at.Low)*1.05, math.Abs(b.at.High)*1.05)
	}
	return reach
}

// step is 1, 2 or 5 times a power of ten, so that there are two to five steps on each side.
func step(reach float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(reach/2)))
	for _, m := range []float64{1, 2, 5} {
		if reach/(m*power) <= 5 {
			return m * power
		}
	}
	return 10 * power
}

func (p *panel) draw(b *bytes.Buffer, top int) {
	reach := p.reach()
	middle, half := float64(plotLeft+plotWidth-plotRight)/2, float64(plotWidth-plotRight-plotLeft)/2
	x := func(v float64) float64 { return middle + v/reach*half }
	from, to := top+panelTop-12, top+panelTop+rowHeight*len(p.bars)
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="#333">%s</text>`+"\n", plotLeft, top+8, escape(p.name))
	every := step(reach)
	for k := -math.Floor(reach / every); k*every <= reach; k++ {
		v := k * every
		stroke := "#ddd"
		if k == 0 {
			stroke = "#333"
		}
		fmt.Fprintf(b, `<path d="M%.1f %dV%d" stroke="%s"/>`+"\n", x(v), from, to, stroke)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#333">%s</text>`+"\n", x(v), to+16, strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64))
	}
	fmt.Fprintf(b, `<path d="M%.1f %dV%d" stroke="#d55e00" stroke-dasharray="5 4"><title>margin</title></path>`+"\n", x(p.margin), from, to)
	for i, r := range p.bars {
		y := top + panelTop + rowHeight*i + 4
		colour := verdictColours[r.verdict]
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" fill="#111">%s</text>`+"\n", plotLeft-10, y+4, escape(r.name))
		fmt.Fprintf(b, `<path d="M%.1f %dH%.1fM%.1f %dv8M%.1f %dv8" stroke="%s" stroke-width="2" fill="none"/>`+"\n", x(r.at.Low), y, x(r.at.High), x(r.at.Low), y-4, x(r.at.High), y-4, colour)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%d" r="4" fill="%s"><title>%s</title></circle>`+"\n", x(r.at.Mean), y, colour,
			escape(fmt.Sprintf("%s: %+.3g, from %+.3g to %+.3g", r.name, r.at.Mean, r.at.Low, r.at.High)))
		fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s">%+.3g, %s</text>`+"\n", plotWidth-plotRight+14, y+4, colour, r.at.Mean, r.verdict)
	}
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a Buffer takes everything
	return b.String()
}
