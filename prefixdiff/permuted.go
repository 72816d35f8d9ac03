package prefixdiff

import (
	"slices"
	"strings"
)

// unit is a line or a sentence: where it stands among the words, and its hash without numbers and signs in front.
type unit struct {
	from, to int
	hash     uint64
}

// ends are the words behind which a unit ends.
type ends struct{ stop, wide word }

func (s splitter) ends() ends {
	one := func(text string) word {
		w, _ := s.split(text, nil)
		return w[0] &^ spaceBit
	}
	return ends{stop: one("."), wide: one("。")}
}

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
			case c == blank, leading && (c == sign || c == number):
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
			w&^spaceBit == e.wide,
			w&^spaceBit == e.stop && next < len(words) && words[next]&spaceBit != 0:
			cut(next)
		}
	}
	cut(len(words))
	return units
}

// permuted reports whether the first difference is that two texts have the same units, or the same words, in another order.
func (g *gap) permuted() bool {
	if g.sameBag() {
		return true
	}
	// The words in front of the difference may be the beginning of a unit.
	back := min(g.from, 64)
	ub := g.units(append(slices.Clone(g.head(back)), g.y...))
	ua := g.units(append(slices.Clone(g.head(back)), g.x...))
	i := 0
	for i < len(ua) && i < len(ub) && ua[i].hash == ub[i].hash {
		i++
	}
	if i >= len(ua) || i >= len(ub) {
		return false
	}
	return has(ua[i+1:], ub[i].hash) && has(ub[i+1:], ua[i].hash)
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
	bag := func(words []word) []word {
		var out []word
		for _, w := range words {
			if c := w.class(); c != blank && c != sign {
				out = append(out, w&^spaceBit)
			}
		}
		slices.Sort(out)
		return out
	}
	p, q := bag(x), bag(y)
	return len(p) >= 2 && slices.Equal(p, q)
}

// order says what is in another order: the members of a map, tools, or documents.
func (g *gap) order() Cause {
	at := int(g.at[min(g.from, len(g.at)-1)])
	if inObject(g.text, at) {
		return MapOrder
	}
	line := strings.LastIndexByte(g.text[:at], '\n') + 1
	lead := strings.ToLower(g.text[max(0, line-300):at])
	rest := g.text[line:]
	if end := strings.Index(rest, "\n\n"); end >= 0 {
		rest = rest[:end]
	}
	short, listed := pairs(rest)
	if strings.Contains(lead, "tool") && (short || listed) {
		return ToolOrder
	}
	if short {
		return MapOrder
	}
	return DocumentOrder
}

// pairs reports whether lines are members of a map, "key: value" with different keys, and whether they are items of any list.
func pairs(text string) (short, listed bool) {
	keys := map[string]bool{}
	lines, members, items := 0, 0, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		lines++
		item := strings.TrimLeft(line, "-*•>0123456789.) \t`\"'")
		if item != line {
			items++
		}
		i := strings.IndexAny(item, ":=")
		if i <= 0 || i > 40 || len(line) > 160 || strings.Contains(item[:i], ". ") {
			continue
		}
		if name := item[:i]; !keys[name] {
			keys[name] = true
			members++
		}
	}
	if lines == 1 && strings.Count(text, ",") > 0 && len(text) < 400 {
		listed = true
	}
	return lines >= 2 && members*10 >= lines*8, listed || lines >= 2 && items*10 >= lines*8
}

// inObject reports whether byte at stands in an object of JSON, or of another language with braces and quoted names.
func inObject(text string, at int) bool {
	depth := 0
	for i := at - 1; i >= max(0, at-16<<10); i-- {
		switch text[i] {
		case '}':
			depth++
		case '{':
			if depth > 0 {
				depth--
				continue
			}
			inner := strings.TrimLeft(text[i+1:min(len(text), i+64)], " \n\t\r")
			return strings.HasPrefix(inner, `"`) || strings.HasPrefix(inner, `'`) || strings.HasPrefix(inner, `\"`)
		}
	}
	return strings.LastIndex(text[:at], "map[") > strings.LastIndexByte(text[:at], ']')
}
