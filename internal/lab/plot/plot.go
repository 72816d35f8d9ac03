// Package plot draws the lab's pictures as SVG: a [Chart] has lines with error bars, and [Intervals] draws differences with their
// confidence intervals. It needs no fonts and no libraries, and equal figures give equal bytes.
package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// picture collects the elements of a picture.
type picture struct{ out bytes.Buffer }

// newPicture begins a picture with a title and a note, both left pixels from its edge.
func newPicture(width, height, left int, title, note string) *picture {
	p := &picture{}
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" `+
		`role="img" aria-label="%s">`, width, height, width, height, title)
	p.add(`<rect width="%d" height="%d" fill="#fff"/>`, width, height)
	p.add(`<text x="%d" y="22" font-size="15" fill="#111">%s</text>`, left, title)
	p.add(`<text x="%d" y="40" font-size="11" fill="#555">%s</text>`, left, note)
	return p
}

// add writes an element. Strings among the arguments are escaped.
func (p *picture) add(format string, args ...any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			var b bytes.Buffer
			_ = xml.EscapeText(&b, []byte(text)) // a Buffer takes everything
			args[i] = b.String()
		}
	}
	fmt.Fprintf(&p.out, format+"\n", args...)
}

func (p *picture) svg() []byte {
	p.add("</svg>")
	return p.out.Bytes()
}

// step is one of the factors times a power of ten, which is at most top/least, or the next power. It is the first one that divides
// top into at most most parts.
func step(top, least, most float64, factors ...float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(top/least)))
	for _, f := range factors {
		if top/(f*power) <= most {
			return f * power
		}
	}
	return 10 * power
}

// tick writes a value at an axis.
func tick(v float64) string { return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64) }

// Chart draws lines with error bars, over axes that begin at 0.
type Chart struct {
	Title, Note, X, Y string
	Logarithmic       bool    // the vertical axis
	Top               float64 // of the vertical axis at least
	lines             []line
}

type line struct {
	name  string
	marks []Mark
}

// Mark is a point of a line. Half is the half width of its error bar, 0: none.
type Mark struct {
	X, Y, Half float64
	Hollow     bool
}

// Add appends a mark to the line of a name.
func (c *Chart) Add(name string, m Mark) {
	i := slices.IndexFunc(c.lines, func(l line) bool { return l.name == name })
	if i < 0 {
		i = len(c.lines)
		c.lines = append(c.lines, line{name: name})
	}
	c.lines[i].marks = append(c.lines[i].marks, m)
}

// Sizes of a chart in pixels.
const (
	chartWidth, chartHeight = 720, 400
	chartLeft, chartRight   = 76, 150
	chartTop, chartBottom   = 56, 50
)

// Colour-blind readers can distinguish the colours of the lines, and the dashes distinguish them in print.
var (
	colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#444444"}
	dashes  = []string{"", "7 3", "2 3", "9 3 2 3", "12 4", "4 4"}
)

// SVG draws the chart.
func (c *Chart) SVG() []byte {
	x, y := c.axes()
	p := newPicture(chartWidth, chartHeight, chartLeft, c.Title, c.Note)
	for _, v := range y.ticks {
		p.add(`<path d="M%.1f %.1fH%.1f" stroke="#ddd"/>`, x.start, y.at(v), x.end)
		p.add(`<text x="%.1f" y="%.1f" text-anchor="end" fill="#333">%s</text>`, x.start-6, y.at(v)+4, tick(v))
	}
	for _, v := range x.ticks {
		p.add(`<text x="%.1f" y="%.1f" text-anchor="middle" fill="#333">%s</text>`, x.at(v), y.start+18, tick(v))
	}
	p.add(`<path d="M%.1f %.1fH%.1f" stroke="#333"/>`, x.start, y.start, x.end)
	p.add(`<text x="%.1f" y="%d" text-anchor="middle" fill="#333">%s</text>`, (x.start+x.end)/2, chartHeight-12, c.X)
	p.add(`<text transform="translate(16 %.1f) rotate(-90)" text-anchor="middle" fill="#333">%s</text>`, (y.start+y.end)/2, c.Y)
	for i, l := range c.lines {
		colour, dash := colours[i%len(colours)], dashes[i%len(dashes)]
		var path strings.Builder
		for k, m := range l.marks {
			fmt.Fprintf(&path, "%s%.1f %.1f", string("ML"[min(k, 1)]), x.at(m.X), y.at(m.Y))
		}
		p.add(`<path d="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`, path.String(), colour, dash)
		for _, m := range l.marks {
			if m.Half > 0 {
				p.add(`<path d="M%.1f %.1fV%.1f" stroke="%s"/>`, x.at(m.X), y.at(max(m.Y-m.Half, y.from)), y.at(m.Y+m.Half), colour)
			}
			tip := fmt.Sprintf("%s, %s: %s ± %s", l.name, number(m.X), number(m.Y), number(m.Half))
			if m.Hollow {
				p.add(`<circle cx="%.1f" cy="%.1f" r="4" fill="#fff" stroke="%s" stroke-width="2"><title>%s</title></circle>`, x.at(m.X), y.at(m.Y),
					colour, tip)
			} else {
				p.add(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s</title></circle>`, x.at(m.X), y.at(m.Y), colour, tip)
			}
		}
		at := chartTop + 10 + 20*i
		p.add(`<path d="M%.1f %dh24" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`, x.end+12, at, colour, dash)
		p.add(`<text x="%.1f" y="%d" fill="#111">%s</text>`, x.end+42, at+4, l.name)
	}
	return p.svg()
}

// axis maps values to pixels.
type axis struct {
	from, to    float64 // values
	start, end  float64 // pixels
	logarithmic bool
	ticks       []float64
}

func (a axis) at(v float64) float64 {
	from, to := a.from, a.to
	if a.logarithmic {
		v, from, to = math.Log10(max(v, a.from)), math.Log10(from), math.Log10(to)
	}
	return a.start + (v-from)/(to-from)*(a.end-a.start)
}

func (c *Chart) axes() (x, y axis) {
	low, high := math.Inf(1), c.Top
	right := 0.0
	for _, l := range c.lines {
		for _, m := range l.marks {
			right = max(right, m.X)
			high = max(high, m.Y+m.Half)
			if m.Y > 0 {
				low = min(low, m.Y)
			}
		}
	}
	x = linear(right, chartLeft, chartWidth-chartRight)
	y = linear(high, chartHeight-chartBottom, chartTop)
	if c.Logarithmic && high > 0 && !math.IsInf(low, 1) {
		y.logarithmic, y.ticks = true, nil
		y.from = math.Pow(10, math.Floor(math.Log10(low)))
		y.to = max(high*1.2, y.from*10)
		for v := y.from; v <= y.to; v *= 10 {
			y.ticks = append(y.ticks, v)
		}
	}
	return x, y
}

// linear is an axis from 0 to a round value.
func linear(top, start, end float64) axis {
	if top <= 0 {
		top = 1
	}
	every := step(top, 4, 6, 1, 2, 2.5, 5)
	a := axis{to: math.Ceil(top/every-1e-9) * every, start: start, end: end}
	for v := 0.0; v <= a.to+every/2; v += every {
		a.ticks = append(a.ticks, v)
	}
	return a
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// Panel is one quantity of [Intervals]: a line with an interval for each of what is compared.
type Panel struct {
	Name   string
	Margin float64 // with its sign: where a loss begins to matter
	Bars   []Bar
}

// Bar is a value with its interval.
type Bar struct {
	Name            string
	Mean, Low, High float64
	Colour, Verdict string
}

// Sizes of panels in pixels.
const (
	panelWidth = 760
	panelLeft  = 150
	panelRight = 170
	barHeight  = 26
	panelTop   = 30 // above the first bar of a panel
	panelBelow = 52 // for axis and its name
	headHeight = 56
)

// Intervals draws panels below each other, each with an axis that has 0 in its middle.
func Intervals(title, note string, panels []Panel) []byte {
	height := headHeight
	for _, p := range panels {
		height += p.height()
	}
	out := newPicture(panelWidth, height, 12, title, note)
	top := headHeight
	for _, p := range panels {
		p.draw(out, top)
		top += p.height()
	}
	return out.svg()
}

func (p *Panel) height() int { return panelTop + barHeight*len(p.Bars) + panelBelow }

// reach is the largest value that must fit, on both sides of 0.
func (p *Panel) reach() float64 {
	reach := math.Abs(p.Margin) * 1.25
	for _, b := range p.Bars {
		reach = max(reach, math.Abs(b.Low)*1.05, math.Abs(b.High)*1.05)
	}
	return reach
}

func (p *Panel) draw(out *picture, top int) {
	reach := p.reach()
	middle, half := float64(panelLeft+panelWidth-panelRight)/2, float64(panelWidth-panelRight-panelLeft)/2
	x := func(v float64) float64 { return middle + v/reach*half }
	from, to := top+panelTop-12, top+panelTop+barHeight*len(p.Bars)
	out.add(`<text x="%d" y="%d" fill="#333">%s</text>`, panelLeft, top+8, p.Name)
	every := step(reach, 2, 5, 1, 2, 5)
	for k := -math.Floor(reach / every); k*every <= reach; k++ {
		v := k * every
		stroke := "#ddd"
		if k == 0 {
			stroke = "#333"
		}
		out.add(`<path d="M%.1f %dV%d" stroke="%s"/>`, x(v), from, to, stroke)
		out.add(`<text x="%.1f" y="%d" text-anchor="middle" fill="#333">%s</text>`, x(v), to+16, tick(v))
	}
	out.add(`<path d="M%.1f %dV%d" stroke="#d55e00" stroke-dasharray="5 4"><title>margin</title></path>`, x(p.Margin), from, to)
	for i, b := range p.Bars {
		y := top + panelTop + barHeight*i + 4
		low, high := x(b.Low), x(b.High)
		out.add(`<text x="%d" y="%d" text-anchor="end" fill="#111">%s</text>`, panelLeft-10, y+4, b.Name)
		out.add(`<path d="M%.1f %dH%.1fM%.1f %dv8M%.1f %dv8" stroke="%s" stroke-width="2" fill="none"/>`, low, y, high, low, y-4, high, y-4,
			b.Colour)
		out.add(`<circle cx="%.1f" cy="%d" r="4" fill="%s"><title>%s</title></circle>`, x(b.Mean), y, b.Colour,
			fmt.Sprintf("%s: %+.3g, from %+.3g to %+.3g", b.Name, b.Mean, b.Low, b.High))
		out.add(`<text x="%d" y="%d" fill="%s">%+.3g, %s</text>`, panelWidth-panelRight+14, y+4, b.Colour, b.Mean, b.Verdict)
	}
}
