package load

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Plot is a picture, as a file of its own.
type Plot struct {
	Name string // of the file
	SVG  []byte
}

// Plots draws the points of one kind of arrivals: the 95th percentile of the time to the first token over the load, output
// tokens a second over the load, and the hit ratio over the progress of the runs under the largest load. Bars are
// intervals as in [Interval], where there are several seeds.
func Plots(points []Point) []Plot {
	if len(points) == 0 {
		return nil
	}
	under := points[0].Engine
	load := "conversations begun per second"
	if strings.HasPrefix(points[0].Arrivals, string(Closed)) {
		load = "users"
	}
	top := slices.MaxFunc(points, func(a, b Point) int { return cmp.Compare(a.Level, b.Level) }).Level
	ttft := chart{title: "Time to first token, 95th percentile", note: under, x: load, y: "milliseconds", logarithmic: true}
	output := chart{title: "Output tokens per second", note: under, x: load, y: "tokens/s"}
	hits := chart{title: "Hit ratio while the trace runs, at " + number(top) + " " + load, note: under, x: "requests so far, %", y: "share of prompt tokens read from the cache", top: 1}
	for _, p := range points {
		ttft.add(p.Policy, p.Level, p.TTFT95)
		output.add(p.Policy, p.Level, p.Output)
		if p.Level == top {
			for i, h := range p.Progress {
				hits.add(p.Policy, float64(i+1)*100/Slices, h)
			}
		}
	}
	return []Plot{{"ttft.svg", ttft.svg()}, {"output.svg", output.svg()}, {"hits.svg", hits.svg()}}
}

// chart draws lines with error bars.
type chart struct {
	title, note, x, y string
	logarithmic       bool    // the vertical axis
	top               float64 // of the vertical axis at least
	lines             []line
}

type line struct {
	name   string
	points []mark
}

type mark struct{ x, y, half float64 }

func (c *chart) add(name string, x float64, y Interval) {
	i := slices.IndexFunc(c.lines, func(l line) bool { return l.name == name })
	if i < 0 {
		i = len(c.lines)
		c.lines = append(c.lines, line{name: name})
	}
	c.lines[i].points = append(c.lines[i].points, mark{x, y.Mean, y.Half})
}

// Sizes in pixels, and the lines' colours: told apart by colour-blind readers too, and by their dashes in print.
const (
	plotWidth, plotHeight = 720, 400
	plotLeft, plotRight   = 76, 150
	plotTop, plotBottom   = 56, 50
)

var (
	colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#444444"}
	dashes  = []string{"", "7 3", "2 3", "9 3 2 3", "12 4", "4 4"}
)

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

func (c *chart) axes() (x, y axis) {
	low, high := math.Inf(1), c.top
	right := 0.0
	for _, l := range c.lines {
		for _, p := range l.points {
			right = max(right, p.x)
			high = max(high, p.y+p.half)
			if p.y > 0 {
				low = min(low, p.y)
			}
		}
	}
	x = linear(right, plotLeft, plotWidth-plotRight)
	y = linear(high, plotHeight-plotBottom, plotTop)
	if c.logarithmic && high > 0 && !math.IsInf(low, 1) {
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
	step := math.Pow(10, math.Floor(math.Log10(top/4)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if top/(m*step) <= 6 {
			step *= m
			break
		}
	}
	a := axis{to: math.Ceil(top/step-1e-9) * step, start: start, end: end}
	for v := 0.0; v <= a.to+step/2; v += step {
		a.ticks = append(a.ticks, v)
	}
	return a
}

func (c *chart) svg() []byte {
	var b bytes.Buffer
	x, y := c.axes()
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" role="img" aria-label="%s">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight, escape(c.title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="15" fill="#111">%s</text>`+"\n", plotLeft, escape(c.title))
	fmt.Fprintf(&b, `<text x="%d" y="40" font-size="11" fill="#555">%s</text>`+"\n", plotLeft, escape(c.note))
	for _, v := range y.ticks {
		fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/>`+"\n", x.start, y.at(v), x.end)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="end" fill="#333">%s</text>`+"\n", x.start-6, y.at(v)+4, tick(v))
	}
	for _, v := range x.ticks {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#333">%s</text>`+"\n", x.at(v), y.start+18, tick(v))
	}
	fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#333"/>`+"\n", x.start, y.start, x.end)
	fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#333">%s</text>`+"\n", (x.start+x.end)/2, plotHeight-12, escape(c.x))
	fmt.Fprintf(&b, `<text transform="translate(16 %.1f) rotate(-90)" text-anchor="middle" fill="#333">%s</text>`+"\n", (y.start+y.end)/2, escape(c.y))
	for i, l := range c.lines {
		colour, dash := colours[i%len(colours)], dashes[i%len(dashes)]
		var path strings.Builder
		for k, p := range l.points {
			fmt.Fprintf(&path, "%s%.1f %.1f", string("ML"[min(k, 1)]), x.at(p.x), y.at(p.y))
		}
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", path.String(), colour, dash)
		for _, p := range l.points {
			if p.half > 0 {
				fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1f" stroke="%s"/>`+"\n", x.at(p.x), y.at(max(p.y-p.half, y.from)), y.at(p.y+p.half), colour)
			}
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s, %s: %s ± %s</title></circle>`+"\n",
				x.at(p.x), y.at(p.y), colour, escape(l.name), number(p.x), number(p.y), number(p.half))
		}
		at := plotTop + 10 + 20*i
		fmt.Fprintf(&b, `<path d="M%.1f %dh24" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", x.end+12, at, colour, dash)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="#111">%s</text>`+"\n", x.end+42, at+4, escape(l.name))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func tick(v float64) string { return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64) }

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a Buffer takes everything
	return b.String()
}
