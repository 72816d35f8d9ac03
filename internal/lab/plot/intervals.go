package plot

import (
	"fmt"
	"math"
)

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
