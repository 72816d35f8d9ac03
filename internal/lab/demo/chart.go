package demo

import (
	"fmt"
	"math"
)

// chart is the picture of all requests: two bars for each.
type chart struct {
	Width, Height  int
	Left, Right    int // of the plot
	Bottom         int
	Ticks          []tick
	Groups         []group
	Known          bool // whether reused tokens are
	Title, Summary string
}

type tick struct {
	Y     int
	Label string
}

// group is one request.
type group struct {
	Label    string
	X        int // middle
	LabelY   int
	Segments []segment
}

// segment is a part of a bar.
type segment struct {
	Class      string
	X, Y, W, H float64
	Tip        string
	tokens     int
}

// Sizes in the units of the picture's view box.
const (
	chartHeight = 340
	chartTop    = 14
	chartLeft   = 62
	barWidth    = 13
	groupWidth  = 38
)

func (r *Result) chart() chart {
	n := len(r.Questions)
	c := chart{
		Width: max(chartLeft+n*groupWidth+12, 480), Height: chartHeight, Left: chartLeft, Bottom: chartHeight - 44,
		Known: Sum(r.Without).CachedKnown && Sum(r.With).CachedKnown,
	}
	c.Right = c.Width - 8
	top := 1
	for i := range r.Questions {
		top = max(top, r.Without[i].Prompt, r.With[i].Prompt)
	}
	step := tickStep(top)
	top = (top + step - 1) / step * step
	scale := float64(c.Bottom-chartTop) / float64(top)
	for v := 0; v <= top; v += step {
		c.Ticks = append(c.Ticks, tick{Y: c.Bottom - int(float64(v)*scale), Label: thousands(v)})
	}
	for i, q := range r.Questions {
		g := group{Label: fmt.Sprintf("%s %d", q.User, q.Turn.Turn), X: chartLeft + i*groupWidth + groupWidth/2, LabelY: c.Bottom + 12}
		left := float64(g.X - barWidth - 1)
		g.Segments = append(g.Segments, bar(c, scale, left, "without", r.Without[i], 0)...)
		saved := max(0, r.Without[i].Prompt-r.With[i].Prompt)
		g.Segments = append(g.Segments, bar(c, scale, left+barWidth+2, "with", r.With[i], saved)...)
		for j := range g.Segments {
			g.Segments[j].Tip = g.Label + ", " + g.Segments[j].Tip
		}
		c.Groups = append(c.Groups, g)
	}
	without, with := Sum(r.Without), Sum(r.With)
	c.Title = "Prompt tokens of each request, without and with ragpilot"
	c.Summary = fmt.Sprintf("%d requests with two bars each. Without: %s prompt tokens in all. With: %s.",
		n, thousands(without.Prompt), thousands(with.Prompt))
	if c.Known {
		c.Summary = fmt.Sprintf("%d requests with two bars each, split into tokens reused from the cache and computed tokens. "+
			"Without: %s prompt tokens in all, %s of them computed. With: %s and %s; the rest of the height is what references saved.",
			n, thousands(without.Prompt), thousands(without.Computed), thousands(with.Prompt), thousands(with.Computed))
	}
	return c
}

// bar stacks reused, computed and saved tokens from the bottom up.
func bar(c chart, scale, x float64, side string, s Sent, saved int) []segment {
	parts := []segment{
		{Class: "reused " + side, tokens: s.Cached, Tip: "reused"},
		{Class: "computed " + side, tokens: s.Computed(), Tip: "computed"},
		{Class: "saved", tokens: saved, Tip: "saved by references"},
	}
	if !s.CachedKnown {
		parts[0].tokens = 0
		parts[1] = segment{Class: "unknown " + side, tokens: s.Prompt, Tip: "in the prompt, reuse unknown"}
	}
	var out []segment
	y := float64(c.Bottom)
	for _, p := range parts {
		if p.tokens == 0 {
			continue
		}
		h := float64(p.tokens) * scale
		y -= h
		p.X, p.Y, p.W, p.H = x, round(y), barWidth, round(h)
		p.Tip = fmt.Sprintf("%s: %s tokens %s", side, thousands(p.tokens), p.Tip)
		out = append(out, p)
	}
	return out
}

// tickStep returns 1, 2 or 5 times a power of ten, so that there are four to nine steps.
func tickStep(top int) int {
	power := int(math.Pow(10, math.Floor(math.Log10(float64(max(top, 1))/4))))
	power = max(power, 1)
	for _, m := range []int{1, 2, 5} {
		if top/(m*power) <= 8 {
			return m * power
		}
	}
	return 10 * power
}

func round(x float64) float64 { return math.Round(x*10) / 10 }
