package gotemplate

import (
	"slices"
	"strings"
	"text/template/parse"
	"unicode/utf8"
)

// Place is an action of a template.
type Place struct {
	File   string
	Line   int
	Action string // {{.Now}}
}

// Find returns the action that wrote byte at of a text. It knows the action by the template's own words around it, so it returns
// false if there are too few of them. A branch is an action if its words were written, or were not.
func Find(files []*File, text string, at int) (Place, bool) {
	at = min(max(at, 0), len(text))
	var best found
	var place Place
	for _, f := range files {
		for _, t := range f.Trees {
			if t.Root == nil {
				continue
			}
			all := sequences(t.Root)
			for _, s := range all {
				if c, ok := s.find(text, at, all); ok && c.better(&best) {
					best = c
					place = Place{f.Name, f.Line(c.node), Source(c.node)}
				}
			}
		}
	}
	return place, best.node != nil
}

// item is a text of a template, or an action.
type item struct {
	text string
	node parse.Node // nil: a text
}

// sequence is one way through a template.
type sequence []item

// add appends an item. Two texts become one.
func (s sequence) add(items ...item) sequence {
	s = slices.Clip(s)
	for _, i := range items {
		if n := len(s); i.node == nil && n > 0 && s[n-1].node == nil {
			s = append(s[:n-1:n-1], item{text: s[n-1].text + i.text})
			continue
		}
		s = append(s, i)
	}
	return s
}

// sequences returns the ways through a list: with all branches as actions, and with one of them opened.
func sequences(list *parse.ListNode) []sequence {
	closed := closedItems(list.Nodes)
	out := []sequence{closed}
	for i, n := range list.Nodes {
		var b *parse.BranchNode
		loop := false
		switch n := n.(type) {
		case *parse.IfNode:
			b = &n.BranchNode
		case *parse.WithNode:
			b = &n.BranchNode
		case *parse.RangeNode:
			b, loop = &n.BranchNode, true
		default:
			continue
		}
		before, after := closedItems(list.Nodes[:i]), closedItems(list.Nodes[i+1:])
		for _, body := range [...]*parse.ListNode{b.List, b.ElseList} {
			if body == nil {
				continue
			}
			for _, s := range sequences(body) {
				out = append(out, before.add(s...).add(after...))
				if loop {
					out = append(out, s.add(s...))
				}
			}
		}
	}
	return out
}

// closedItems makes the items of nodes, a branch being an action.
func closedItems(nodes []parse.Node) sequence {
	var s sequence
	for _, n := range nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			s = s.add(item{text: string(n.Text)})
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 { // else it writes nothing
				s = s.add(item{node: n})
			}
		case *parse.IfNode, *parse.WithNode, *parse.RangeNode, *parse.TemplateNode:
			s = s.add(item{node: n})
		}
	}
	return s
}

// found is an action that may have written a place.
type found struct {
	node  parse.Node
	sides int  // on which there are words of the template
	clean bool // of such words between them
	words int  // bytes of them
	width int  // bytes between them
}

func (f *found) better(than *found) bool {
	switch {
	case f.sides != than.sides:
		return f.sides > than.sides
	case f.clean != than.clean:
		return f.clean
	case f.width != than.width:
		return f.width < than.width
	}
	return f.words > than.words
}

// find looks for the actions between two texts that are long enough to be found, with the place between them. All are the ways
// through the template.
func (s sequence) find(text string, at int, all []sequence) (best found, ok bool) {
	for from := 0; from < len(s); {
		to := from
		for to < len(s) && (s[to].node != nil || !strong(s[to].text)) {
			to++
		}
		if c, hit := s.between(from, to, text, at, all); hit && (!ok || c.better(&best)) {
			best, ok = c, true
		}
		from = to + 1
	}
	return best, ok
}

// between looks in the items from to to, which are actions and short texts.
func (s sequence) between(from, to int, text string, at int, all []sequence) (found, bool) {
	var c found
	start, end := 0, len(text)
	if from > 0 {
		before := tail(s[from-1].text)
		i := strings.LastIndex(text[:at], before)
		if i < 0 {
			return c, false
		}
		start = i + len(before)
		c.sides++
		c.words += len(before)
	}
	if to < len(s) {
		after := head(s[to].text)
		i := strings.Index(text[start:], after)
		if i < 0 || start+i < at {
			return c, false
		}
		end = start + i
		c.sides++
		c.words += len(after)
	}
	c.width = end - start
	written := text[start:end]
	for _, i := range s[from:to] {
		if i.node != nil {
			c.node = i.node
			continue
		}
		next := strings.Index(text[start:end], i.text)
		if next < 0 || start+next >= at && c.node != nil {
			break
		}
		start += next + len(i.text)
	}
	if _, ok := c.node.(*parse.ActionNode); !ok || !slices.ContainsFunc(all, func(s sequence) bool { return s.wordsIn(written) }) {
		c.clean = true
	}
	return c, c.node != nil && c.sides > 0
}

// wordsIn reports whether a text has words of the template.
func (s sequence) wordsIn(text string) bool {
	return slices.ContainsFunc(s, func(i item) bool {
		return i.node == nil && strong(i.text) && strings.Contains(text, strings.TrimLeft(head(i.text), " \t\r\n"))
	})
}

// leastWords is how many bytes other than white space make a text that can be found.
const leastWords = 4

func strong(text string) bool {
	n := 0
	for word := range strings.FieldsSeq(text) {
		n += len(word)
	}
	return n >= leastWords
}

// most bounds how much of a text is looked for.
const most = 80

// tail and head return the end and the beginning of a text. White space at the other side may have been cut off.
func tail(text string) string {
	from := max(0, len(text)-most)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return strings.TrimLeft(text[from:], " \t\r\n")
}

func head(text string) string {
	to := min(len(text), most)
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	return strings.TrimRight(text[:to], " \t\r\n")
}
