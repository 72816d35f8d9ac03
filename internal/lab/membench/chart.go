package membench

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
)

// Sizes of the picture in pixels, and the arms' colours, which colour-blind readers can distinguish.
const (
	chartWidth  = 720
	chartHeight = 400
	chartLeft   = 64
	chartRight  = 130
	chartTop    = 60
	chartBottom = 52
)

var chartColours = map[string]string{ArmNone: "#444444", ArmWhole: "#d55e00", ArmTopK: "#0072b2", ArmOurs: "#009e73"}

// Chart draws quality against computed prompt tokens as SVG, one mark for each arm and cache. Quality is the share of right
// answers if a model has answered, and otherwise that of the needed facts that stood in the prompts.
func (p *Prompted) Chart() []byte {
	quality, of := "turns with the needed fact in the prompt, %", func(a *Arm) float64 { return a.Held }
	if p.Model != "" {
		quality, of = "right answers, %", func(a *Arm) float64 { return a.Right }
	}
	top := 1.0
	for _, a := range p.Arms {
		top = max(top, a.Computed, a.ComputedSmall)
	}
	step := niceStep(top)
	top = math.Ceil(top/step) * step
	x := func(v float64) float64 { return chartLeft + v/top*(chartWidth-chartLeft-chartRight) }
	y := func(share float64) float64 {
		return chartHeight - chartBottom - share*(chartHeight-chartBottom-chartTop)
	}

	var b bytes.Buffer
	title := "Agent memory: quality against computed prompt tokens"
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" role="img" aria-label="%s">`+"\n",
		chartWidth, chartHeight, chartWidth, chartHeight, title)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", chartWidth, chartHeight)
	fmt.Fprintf(&b, `<text x="12" y="22" font-size="15" fill="#111">%s</text>`+"\n", title)
	note := fmt.Sprintf("embedder %s, k = %d; full: a cache without a limit, hollow: one of %d tokens", p.Embedder, p.K, p.Cache)
	if p.Model != "" {
		note += "; answers of " + p.Model
	}
	fmt.Fprintf(&b, `<text x="12" y="40" font-size="11" fill="#555">%s</text>`+"\n", xmlText(note))
	for v := 0.0; v <= top+step/2; v += step {
		fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1f" stroke="#ddd"/>`+"\n", x(v), y(1), y(0))
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#333">%s</text>`+"\n", x(v), y(0)+16, strconv.FormatFloat(v, 'f', -1, 64))
	}
	for share := 0; share <= 100; share += 20 {
		at := y(float64(share) / 100)
		fmt.Fprintf(&b, `<path d="M%d %.1fH%.1f" stroke="#ddd"/>`+"\n", chartLeft, at, x(top))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end" fill="#333">%d</text>`+"\n", chartLeft-8, at+4, share)
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#333">computed prompt tokens a turn (left is better)</text>`+"\n", (x(0)+x(top))/2, chartHeight-12)
	fmt.Fprintf(&b, `<text x="%d" y="%.1f" fill="#333">%s</text>`+"\n", chartLeft, y(1)-6, quality)
	for i := range p.Arms {
		a := &p.Arms[i]
		colour, at := chartColours[a.Name], y(of(a))
		fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="%s" stroke-dasharray="3 3"/>`+"\n", x(a.Computed), at, x(a.ComputedSmall), colour)
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="5" fill="%s"><title>%s</title></circle>`+"\n", x(a.Computed), at, colour,
			xmlText(fmt.Sprintf("%s: %.0f tokens, %s", a.Name, a.Computed, percent(of(a)))))
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="5" fill="#fff" stroke="%s" stroke-width="2"><title>%s</title></circle>`+"\n", x(a.ComputedSmall), at, colour,
			xmlText(fmt.Sprintf("%s, small cache: %.0f tokens, %s", a.Name, a.ComputedSmall, percent(of(a)))))
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n", x(max(a.Computed, a.ComputedSmall))+10, at+4, colour, a.Name)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// niceStep is 1, 2 or 5 times a power of ten, so that there are three to eight steps.
func niceStep(top float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(top/3)))
	for _, m := range []float64{1, 2, 5} {
		if top/(m*power) <= 8 {
			return m * power
		}
	}
	return 10 * power
}

func xmlText(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a Buffer takes everything
	return b.String()
}
