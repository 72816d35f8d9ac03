package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

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
