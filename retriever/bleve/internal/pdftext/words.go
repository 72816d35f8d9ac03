package pdftext

import (
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
)

// matrix is [a b c d e f] of PDF 32000, 8.3.3: x' = ax + cy + e, y' = bx + dy + f.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// mul returns the matrix that does m first, then n.
func (m matrix) mul(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// state is the part of the graphics and text state that moves text, PDF 32000, 9.3 and 9.4.
type state struct {
	ctm, tm, line             matrix
	size, leading, char, word float64
	scale                     float64
	font                      *font
}

func (s *state) reset() { *s = state{ctm: identity, tm: identity, line: identity, scale: 1} }

func (s *state) move(x, y float64) {
	s.line = matrix{1, 0, 0, 1, x, y}.mul(s.line)
	s.tm = s.line
}

// words reads a page's operators and builds its text.
type words struct {
	page       pdf.Page
	limits     *budget
	fonts      map[string]*font
	state      state
	saved      []state
	out        strings.Builder
	endX, endY float64 // where the last glyph ended
	lastSize   float64
	spaceBelow float64 // the usual distance of lines
	some       bool
}

// hyphenated is a word that goes on in the next line.
var hyphenated = regexp.MustCompile(`(\p{L})-\n(\p{Ll})`)

// text returns what was read. A word that was cut at the end of a line is put together again, so that it can be found;
// the few that are written with a hyphen lose it there.
func (w *words) text() string { return hyphenated.ReplaceAllString(w.out.String(), "$1$2") }

// do carries out one operator.
func (w *words) do(stack *pdf.Stack, op string) {
	w.limits.operator()
	args := make([]pdf.Value, stack.Len())
	for i := len(args) - 1; i >= 0; i-- {
		args[i] = stack.Pop()
	}
	num := func(i int) float64 {
		if i >= len(args) {
			return 0
		}
		return args[i].Float64()
	}
	s := &w.state
	switch op {
	case "q":
		if len(w.saved) > 1000 {
			panic("states are nested too deep")
		}
		w.saved = append(w.saved, *s)
	case "Q":
		if n := len(w.saved); n > 0 {
			*s, w.saved = w.saved[n-1], w.saved[:n-1]
		}
	case "cm":
		s.ctm = matrix{num(0), num(1), num(2), num(3), num(4), num(5)}.mul(s.ctm)
	case "BT":
		s.tm, s.line = identity, identity
	case "Tf":
		if len(args) == 2 {
			s.font, s.size = w.font(args[0].Name()), num(1)
		}
	case "Tc":
		s.char = num(0)
	case "Tw":
		s.word = num(0)
	case "Tz":
		s.scale = num(0) / 100
	case "TL":
		s.leading = num(0)
	case "Td":
		s.move(num(0), num(1))
	case "TD":
		s.leading = -num(1)
		s.move(num(0), num(1))
	case "Tm":
		s.line = matrix{num(0), num(1), num(2), num(3), num(4), num(5)}
		s.tm = s.line
	case "T*":
		s.move(0, -s.leading)
	case "Tj", "'", "\"", "TJ":
		w.show(op, args)
	}
}

// show carries out the operators that show text.
func (w *words) show(op string, args []pdf.Value) {
	s := &w.state
	if op == "\"" && len(args) == 3 {
		s.word, s.char = args[0].Float64(), args[1].Float64()
	}
	if op == "'" || op == "\"" {
		s.move(0, -s.leading)
	}
	if len(args) == 0 {
		return
	}
	last := args[len(args)-1]
	if op != "TJ" {
		w.glyphs(last.RawString())
		return
	}
	for i := range last.Len() {
		if part := last.Index(i); part.Kind() == pdf.String {
			w.glyphs(part.RawString())
		} else {
			s.tm = matrix{1, 0, 0, 1, -part.Float64() / 1000 * s.size * s.scale, 0}.mul(s.tm)
		}
	}
}

// glyphs shows one string.
func (w *words) glyphs(raw string) {
	s := &w.state
	if raw == "" || s.font == nil {
		return
	}
	text := s.font.enc.Decode(raw)
	at := s.tm.mul(s.ctm)
	size := math.Abs(s.size) * math.Hypot(at[2], at[3])
	w.gap(at[4], at[5], size)
	w.write(text)

	advance := 0.0
	for width, space := range s.font.widths(raw) {
		advance += width*s.size + s.char
		if space {
			advance += s.word
		}
	}
	s.tm = matrix{1, 0, 0, 1, advance * s.scale, 0}.mul(s.tm)
	end := s.tm.mul(s.ctm)
	w.endX, w.endY, w.lastSize, w.some = end[4], end[5], size, true
}

// gap writes what the distance from the last glyph means: nothing, a space, a new line or a new paragraph.
func (w *words) gap(x, y, size float64) {
	if !w.some {
		return
	}
	unit := max(w.lastSize, size, 1e-3)
	down := w.endY - y
	switch {
	case math.Abs(down) < 0.4*unit:
		if x-w.endX > 0.15*unit || x < w.endX-unit {
			w.space()
		}
	case down < 0 || down > 4*unit: // upwards, or far down: another column, or another part of the page
		w.write("\n\n")
	case w.spaceBelow > 0 && down > 1.35*w.spaceBelow, w.spaceBelow == 0 && down > 2*unit, size > 1.15*w.lastSize, w.lastSize > 1.15*size:
		w.write("\n\n")
	default:
		w.spaceBelow = down
		w.write("\n")
	}
}

func (w *words) space() {
	if text := w.out.String(); !strings.HasSuffix(text, " ") && !strings.HasSuffix(text, "\n") {
		w.write(" ")
	}
}

// write appends text without control characters and invalid UTF-8.
func (w *words) write(text string) {
	w.limits.write(len(text))
	for _, r := range text {
		switch {
		case r == '\n' || r >= ' ' && r != 0x7f && r != utf8.RuneError:
			w.out.WriteRune(r)
		case r == '\t' || r == '\r':
			w.out.WriteByte(' ')
		}
	}
}
