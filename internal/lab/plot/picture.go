// Package plot draws the lab's pictures as SVG: a [Chart] has lines with error bars, and [Intervals] draws differences with their
// confidence intervals. It needs no fonts and no libraries, and equal figures give equal bytes.
package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
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
