package prefixdiff

import (
	"slices"
	"strings"
)

// texts compares two texts.
func (c *pair) texts(d *difference, a, b *view) {
	part := &c.p.Parts[d.part]
	_, at := c.split(part.worded(), nil)
	x, y := a.words, b.words
	n := sameWords(x, y)
	d.at = int(at[min(n, len(at)-1)])
	g := gap{pair: c, text: part.Text, at: at, x: x[n:], y: y[n:], from: n, index: d.part, otherwise: c.edited(d)}
	d.cause = g.cause()
	d.certain, d.blank = g.certain, g.blank
	if d.cause == Template || d.cause == EditedHistory {
		if c.dataBefore(part.Text, d.at) {
			d.cause, d.certain = Image, true
		}
	}
}

// dataBefore reports whether the text in front of byte at is the beginning of a picture in the text.
func (c *pair) dataBefore(text string, at int) bool {
	before := text[max(0, at-4096):at]
	i := strings.LastIndex(before, ";base64,")
	return i >= 0 && !strings.ContainsAny(before[i+8:], " \n\"')")
}

// gap is what differs between two texts.
type gap struct {
	*pair
	text  string  // the later one
	at    []int32 // where its words begin
	x, y  []word  // from the first difference on
	from  int     // words in front
	index int     // of the part

	otherwise Cause // if it is other words
	certain   bool
	blank     bool
	near      bool // the cue is the word in front
}

// cause names the cause.
func (g *gap) cause() Cause {
	if blankOnly(g.x, g.y) {
		g.certain, g.blank = true, true
		return WhiteSpace
	}
	if cause := g.order(); cause != "" {
		g.certain = true
		return cause
	}
	i, j := align(g.x, g.y)
	x, y := trimBlank(g.x[:i]), trimBlank(g.y[:j])
	if !firstVolatile(x).volatile() && !firstVolatile(y).volatile() && g.otherwise == Template && g.inToolList() {
		g.certain = true
		return ToolSet
	}
	if cause := g.small(x, y); cause != "" {
		g.certain = g.otherwise == Template || steady(x) <= maxSteady && steady(y) <= maxSteady
		return cause
	}
	return g.otherwise
}

// blankOnly reports whether two texts are equal but for white space. Otherwise it looks at the first difference alone: if that is white
// space, it is the cause, whatever comes later.
func blankOnly(x, y []word) bool {
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(x) > 0 && x[0].class() == blank && (len(y) == 0 || !x[0].same(y[0])):
			x = x[1:]
		case len(y) > 0 && y[0].class() == blank && (len(x) == 0 || !x[0].same(y[0])):
			y = y[1:]
		case len(x) == 0 || len(y) == 0 || !x[0].same(y[0]):
			return false
		default:
			x, y = x[1:], y[1:]
		}
	}
	return true
}

// Bounds of a small difference: its words, and how many equal words have to follow.
const (
	maxGap = 48
	follow = 3
)

// align returns the shortest beginnings of two texts behind which they go on with the same words. If there are none, it returns all
// words up to the bound.
func align(x, y []word) (i, j int) {
	for sum := 1; sum <= 2*maxGap; sum++ {
		for i := max(0, sum-maxGap); i <= min(sum, maxGap, len(x)); i++ {
			if j := sum - i; j <= len(y) && j <= maxGap && agree(x[i:], y[j:]) {
				return i, j
			}
		}
	}
	return min(len(x), maxGap), min(len(y), maxGap)
}

// agree reports whether texts begin with the same words, or end together.
func agree(x, y []word) bool {
	n := min(follow, len(x), len(y))
	for i := range n {
		if !x[i].same(y[i]) {
			return false
		}
	}
	return n == follow || len(x) == len(y)
}

// small names the cause of a small difference; "": it is other words.
func (g *gap) small(x, y []word) Cause {
	if len(x) == 0 && len(y) == 0 {
		return WhiteSpace
	}
	switch {
	case len(x) > 0 && len(y) > 0:
	case g.b[g.index].role == System:
		return onlyOne(append(slices.Clone(x), y...))
	default:
		return ""
	}
	cue := g.cue()
	p, q := firstVolatile(x), firstVolatile(y)
	switch {
	case p == address || q == address:
		return UserName
	case p == clock && q.volatile() || q == clock && p.volatile():
		return Clock
	case p == random || q == random:
		if len(x) > 3 || len(y) > 3 {
			break
		}
		if cue == who && g.near {
			return UserName
		}
		return RandomID
	case (p == number || p == digits) && (q == number || q == digits):
		return g.counted(cue)
	}
	switch {
	case cue == when && len(x) <= 12 && len(y) <= 12:
		return Clock
	case cue == key && len(x) <= 3 && len(y) <= 3:
		return RandomID
	case cue == who && len(x) <= 5 && len(y) <= 5, isName(x) && isName(y) && (g.whoseName() || g.titled()):
		return UserName
	}
	return ""
}

// onlyOne names the cause where words stand in one of the texts alone: a line with a time that is not in each request.
func onlyOne(words []word) Cause {
	if len(words) > maxGap/2 {
		return ""
	}
	for _, w := range words {
		switch w.class() {
		case clock:
			return Clock
		case random:
			return RandomID
		}
	}
	return ""
}

// maxSteady is how many ordinary words may differ beside a time or a number in a message, which is another message otherwise.
const maxSteady = 8

// steady counts the words that do not change by their nature.
func steady(words []word) int {
	n := 0
	for _, w := range words {
		if c := w.class(); !c.volatile() && c != sign && c != blank {
			n++
		}
	}
	return n
}

// counted names the cause where numbers differ.
func (g *gap) counted(cue cue) Cause {
	switch cue {
	case who:
		if g.near {
			return UserName
		}
	case when:
		return Clock
	case key:
		return RandomID
	case count:
		return Counter
	}
	if g.otherwise == Template || g.from <= fewInFront {
		return Counter
	}
	return ""
}

// fewInFront is the number of words in front of a number that counts messages, such as "[3/10]" or "(4 of 10 used)".
const fewInFront = 4

func trimBlank(w []word) []word {
	for len(w) > 0 && w[0].class() == blank {
		w = w[1:]
	}
	for len(w) > 0 && w[len(w)-1].class() == blank {
		w = w[:len(w)-1]
	}
	return w
}

// firstVolatile returns the class of the first word, or of the one behind signs.
func firstVolatile(words []word) class {
	for _, w := range words {
		switch c := w.class(); c {
		case sign, blank:
		default:
			return c
		}
	}
	return plain
}

// isName reports whether words begin with a name: up to six words, each with a capital letter, or a few signs of a script that has none.
func isName(words []word) bool {
	n, wide := 0, 0
	for _, w := range words {
		switch w.class() {
		case capital:
			n++
			continue
		case ideograph:
			wide++
			continue
		case sign, blank:
			continue
		}
		break
	}
	return wide > 0 && wide <= 6 && n == 0 || n > 0 && n <= 6 && words[0].class() == capital
}
