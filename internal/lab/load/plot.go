package load

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/plot"
)

// Plots draws the points of one kind of arrivals, as SVG by the name of a file: the 95th percentile of the time to the first token over
// the load, output tokens a second over the load, and the hit ratio over the progress of the runs under the largest load. Bars are
// intervals as in [figures.Interval], where there are several seeds.
func Plots(points []Point) map[string][]byte {
	if len(points) == 0 {
		return nil
	}
	under := points[0].Engine
	load := "conversations begun per second"
	if strings.HasPrefix(points[0].Arrivals, string(Closed)) {
		load = "users"
	}
	top := slices.MaxFunc(points, func(a, b Point) int { return cmp.Compare(a.Level, b.Level) }).Level
	ttft := plot.Chart{Title: "Time to first token, 95th percentile", Note: under, X: load, Y: "milliseconds", Logarithmic: true}
	output := plot.Chart{Title: "Output tokens per second", Note: under, X: load, Y: "tokens/s"}
	hits := plot.Chart{
		Title: "Hit ratio while the trace runs, at " + number(top) + " " + load, Note: under,
		X: "requests so far, %", Y: "share of prompt tokens read from the cache", Top: 1,
	}
	mark := func(x float64, y figures.Interval) plot.Mark { return plot.Mark{X: x, Y: y.Mean, Half: y.Half} }
	for _, p := range points {
		ttft.Add(p.Policy, mark(p.Level, p.TTFT95))
		output.Add(p.Policy, mark(p.Level, p.Output))
		if p.Level == top {
			for i, h := range p.Progress {
				hits.Add(p.Policy, mark(float64(i+1)*100/Slices, h))
			}
		}
	}
	return map[string][]byte{"ttft.svg": ttft.SVG(), "output.svg": output.SVG(), "hits.svg": hits.SVG()}
}
