package prefixdiff

import (
	"slices"
	"strings"
)

// unit is a line or a sentence: where it stands among the words, and its hash without numbers and signs in front.
type unit struct {
	from, to int
	hash     uint64
	labelled bool
}

// ends are the words behind which a unit ends.
type ends struct {
	stop, wide, brace word
	letters           map[word]bool // that number documents: A, B, C
}

func (s splitter) ends() ends {
	one := func(text string) word {
		w, _ := s.split(text, nil)
		return w[0] &^ spaceBit
	}
	letters := make(map[word]bool, 52)
	for c := 'A'; c <= 'Z'; c++ {
		letters[one(string(c))], letters[one(string(c+'a'-'A'))] = true, true
	}
	return ends{stop: one("."), wide: one("。"), brace: one("}"), letters: letters}
}

// labelled is how many words of a unit may stand in front of its number, as in "Source 3:": documents are numbered anew where they go.
const labelled = 3

// units cuts words into lines and sentences of at least two words.
func (g *gap) units(words []word) []unit {
	e := g.ends()
	var units []unit
	from := 0
	cut := func(to int) {
		u := unit{from: from, to: to}
		n, leading := 0, true
		for _, w := range words[from:to] {
			switch c := w.class(); {
			case c == blank, leading && c == sign:
				continue
			case n < labelled && (c == number || e.letters[w&^spaceBit]):
				u.labelled = true
				continue
			}
			leading = false
			u.hash = mix(u.hash, uint64(w&^spaceBit))
			n++
		}
		if n >= 2 {
			units = append(units, u)
		}
		from = to
	}
	for i, w := range words {
		next := i + 1
		switch {
		case w.class() == blank,
			w&^spaceBit == e.wide, w&^spaceBit == e.brace,
			w&^spaceBit == e.stop && next < len(words) && words[next]&spaceBit != 0:
			cut(next)
		}
	}
	cut(len(words))
	return units
}

// unitsMoved reports whether the first difference is that two texts have the same units in another order.
func (g *gap) unitsMoved() bool {
	// The words in front of the difference may be the beginning of a unit.
	back := min(g.from, 64)
	ub := g.units(append(slices.Clone(g.head(back)), g.y...))
	ua := g.units(append(slices.Clone(g.head(back)), g.x...))
	i := 0
	for i < len(ua) && i < len(ub) && ua[i].hash == ub[i].hash {
		i++
	}
	return movedBack(ua[i:], ub[i:]) && movedBack(ub[i:], ua[i:])
}

// movedBack reports whether the first unit of a text stands further back in the other one. If it has a number or a letter in front, the
// second one may be the sign, too.
func movedBack(in, units []unit) bool {
	for i, u := range units[:min(len(units), 2)] {
		if i+1 < len(in) && has(in[i+1:], u.hash) {
			return true
		}
		if !u.labelled {
			return false
		}
	}
	return false
}

// head returns the last n words in front of the difference.
func (g *gap) head(n int) []word {
	words := g.b[g.index].words
	return words[g.from-n : g.from]
}

func has(units []unit, h uint64) bool {
	return slices.ContainsFunc(units, func(u unit) bool { return u.hash == h })
}

// sameBag reports whether the words between the common beginning and the common end are the same, in another order.
func (g *gap) sameBag() bool {
	x, y := g.x, g.y
	for len(x) > 0 && len(y) > 0 && x[len(x)-1].same(y[len(y)-1]) {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	plain := func(words []word) []word {
		var out []word
		for _, w := range words {
			if c := w.class(); c != blank && c != sign {
				out = append(out, w&^spaceBit)
			}
		}
		return out
	}
	p, q := plain(x), plain(y)
	if len(p) < 2 || len(p) != len(q) || slices.Equal(p, q) {
		return false
	}
	slices.Sort(p)
	slices.Sort(q)
	return slices.Equal(p, q)
}

// order says what is in another order: the members of a map, tools, or documents; "": it is no order.
func (g *gap) order() Cause {
	moved, bag := g.unitsMoved(), g.sameBag()
	if !moved && !bag {
		return ""
	}
	at := int(g.at[min(g.from, len(g.at)-1)])
	if inside := enclosing(g.text, at); inside != 0 {
		switch {
		case inside == '{' && !isKey(g.text, at) && moved && g.inToolList():
			return ToolOrder
		case inside == '{' && !isKey(g.text, at):
			return DocumentOrder
		}
		return MapOrder
	}
	if g.inToolList() {
		return ToolOrder
	}
	line := strings.LastIndexByte(g.text[:at], '\n') + 1
	rest := g.text[line:]
	if end := strings.Index(rest, "\n\n"); end >= 0 {
		rest = rest[:end]
	}
	switch {
	case !moved: // words of one line
		if first, _, _ := strings.Cut(rest, "\n"); strings.Count(first, "=")+strings.Count(first, ",")+strings.Count(first, "&") < 2 {
			return ""
		}
		return MapOrder
	case short(rest):
		return MapOrder
	}
	return DocumentOrder
}

// shortLine is the length in bytes up to which a line is a member of a map rather than a document.
const shortLine = 48

// short reports whether lines are members of a map: short, or "key: value" with different keys.
func short(text string) bool {
	keys := map[string]bool{}
	lines, members, bytes := 0, 0, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "</") {
			continue
		}
		lines++
		bytes += len(line)
		item := strings.TrimLeft(line, "-*•・|>0123456789.) \t`\"'")
		i := strings.IndexAny(item, ":=|")
		if i <= 0 || i > 40 || len(line) > 160 || strings.Contains(item[:i], ". ") {
			continue
		}
		if name := item[:i]; !keys[name] {
			keys[name] = true
			members++
		}
	}
	return lines >= 2 && (members*10 >= lines*8 || bytes <= lines*shortLine)
}

// enclosing returns the bracket of the JSON object or list that byte at stands in, also in other languages' notation; 0: none.
func enclosing(text string, at int) byte {
	depth := 0
	for i := at - 1; i >= max(0, at-16<<10); i-- {
		switch text[i] {
		case '}', ']':
			depth++
		case '{', '[':
			if depth > 0 {
				depth--
				continue
			}
			inner := strings.TrimLeft(text[i+1:min(len(text), i+64)], " \n\t\r\\")
			if inner == "" || inner[0] != '"' && inner[0] != '\'' && (text[i] == '{' || inner[0] != '{') {
				if strings.HasSuffix(text[:i], "map") {
					return '[' // of Go
				}
				return 0
			}
			if rest := strings.TrimLeft(inner[1:], `"'`); text[i] == '{' {
				if end := strings.IndexAny(rest, `"'`); end >= 0 && strings.HasPrefix(strings.TrimLeft(rest[end+1:], " "), ",") {
					return '[' // a set of Python
				}
			}
			return text[i]
		}
	}
	return 0
}

// isKey reports whether byte at of an object belongs to the name of a member.
func isKey(text string, at int) bool {
	rest := strings.TrimLeft(text[at:], `"'`)
	end := strings.IndexAny(rest, `"'`)
	return end >= 0 && end < 128 && strings.HasPrefix(strings.TrimLeft(rest[end+1:], " "), ":")
}

// toolWords name a list of tools, in lower case.
var toolWords = []string{"tool", "function", "werkzeug", "outil", "herramienta", "strument", "ferramenta", "инструмент", "工具", "ツール", "도구"}

// maxLines is how many lines in front of a difference are looked at.
const maxLines = 64

// inToolList reports whether the difference stands in a list of tools that is written out: the nearest heading is about tools.
func (g *gap) inToolList() bool {
	if g.b[g.index].kind != Text {
		return false
	}
	at := int(g.at[min(g.from, len(g.at)-1)])
	before := g.text[:at]
	for range maxLines {
		i := strings.LastIndexByte(before, '\n')
		line := strings.ToLower(strings.TrimSpace(before[i+1:]))
		if heads(line) {
			for _, w := range toolWords {
				if strings.Contains(line, w) {
					return true
				}
			}
			if strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ") {
				return false
			}
		}
		if i < 0 {
			return false
		}
		before = before[:i]
	}
	return false
}

// heads reports whether a line may be the heading of a list.
func heads(line string) bool {
	return len(line) <= 120 && (strings.HasSuffix(line, ":") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<")) ||
		strings.HasPrefix(line, "tools: ") || strings.HasPrefix(line, "tools=")
}
