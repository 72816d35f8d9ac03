package batch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What {{*}} and {{blocks}} have between their braces.
const (
	allMark    = "*"
	blocksMark = "blocks"
)

// templateLine is a line of a prompt's text, with its line feed.
type templateLine struct {
	pieces []piece
	whole  string // allMark or blocksMark, if that is all there is on the line
}

func (t *templateLine) hasCells() bool { return slices.ContainsFunc(t.pieces, piece.isCell) }

// text returns a line without cells.
func (t *templateLine) text() string {
	var b strings.Builder
	for _, p := range t.pieces {
		b.WriteString(p.text)
	}
	return b.String()
}

// endLine sees to it that the line ends with a line feed: units, of which any may be the last, all do.
func (t *templateLine) endLine() {
	if last := t.pieces[len(t.pieces)-1]; last.isCell() || !strings.HasSuffix(last.text, "\n") {
		t.pieces = append(t.pieces, piece{"\n", -1})
	}
}

// read cuts the text of a prompt into head, lines and tail.
func (l *layout) read(p *Prompt) error {
	lines, err := l.template(p)
	if err != nil {
		return err
	}
	named := map[int]bool{}
	for _, t := range lines {
		for _, q := range t.pieces {
			named[q.column] = true // -1, too, which is no column
		}
	}
	between := ""
	for _, t := range lines {
		var units []line
		switch {
		case t.whole == allMark:
			units = l.others(p.Columns, named)
		case t.whole == blocksMark:
			units = []line{{blocks: true}}
		case t.hasCells():
			t.endLine()
			units = []line{{pieces: t.pieces}}
		default:
			between += t.text()
		}
		if len(units) > 0 {
			l.put(between, units)
			between = ""
		}
	}
	l.tail = between
	if len(l.lines) == 0 {
		return fmt.Errorf("prompt: it names no column of %s", quoteAll(l.columns))
	}
	return nil
}

// put adds units, and the text in front of them: to the head if they are the first, else to a line beside it. A line of blocks has no text
// of its own, so that each block is the same unit wherever it stands.
func (l *layout) put(text string, units []line) {
	switch last := len(l.lines) - 1; {
	case last < 0:
		l.head = text
	case text == "":
	case l.lines[last].blocks:
		units[0].pieces = append([]piece{{text, -1}}, units[0].pieces...)
	default:
		l.lines[last].pieces = append(l.lines[last].pieces, piece{text, -1})
	}
	if trimmed := strings.TrimSpace(text); trimmed != "" && len(l.lines) > 0 && l.inPlace == "" {
		l.inPlace = fmt.Sprintf("the prompt has text between its columns (%q)", shorten(trimmed))
	}
	l.lines = append(l.lines, units...)
}

// others returns a line for each column that {{*}} stands for.
func (l *layout) others(chosen []string, named map[int]bool) []line {
	var lines []line
	for i, c := range l.columns {
		if i == l.blocks || named[i] || len(chosen) > 0 && !slices.Contains(chosen, c) {
			continue
		}
		lines = append(lines, line{pieces: []piece{{c + ": ", -1}, {"", i}, {"\n", -1}}})
	}
	return lines
}

// template returns the lines of a prompt's text, with {{*}} and {{blocks}} where they are implied.
func (l *layout) template(p *Prompt) ([]templateLine, error) {
	lines, places, err := l.textLines(strings.ReplaceAll(p.Text, "\r\n", "\n"))
	if err != nil {
		return nil, err
	}
	if len(places) == 0 && !slices.ContainsFunc(lines, func(t templateLine) bool { return t.hasCells() }) {
		var text strings.Builder
		for _, t := range lines {
			text.WriteString(t.text())
		}
		lines = []templateLine{{whole: allMark}}
		if strings.TrimSpace(text.String()) != "" {
			lines = slices.Insert(lines, 0, templateLine{pieces: []piece{{strings.TrimRight(text.String(), "\n") + "\n\n", -1}}})
		}
	} else if places[allMark] == 0 && len(p.Columns) > 0 {
		return nil, fmt.Errorf("columns: the prompt has no {{*}} where %s could stand", quoteAll(p.Columns))
	}
	if l.hasBlocks && places[blocksMark] == 0 {
		at := len(lines)
		for at > 0 && lines[at-1].whole == "" && !lines[at-1].hasCells() {
			at--
		}
		lines = slices.Insert(lines, at, templateLine{whole: blocksMark})
	}
	return lines, nil
}

// textLines reads the lines of a text. places are the lines, from 1, where {{*}} and {{blocks}} stand.
func (l *layout) textLines(text string) (lines []templateLine, places map[string]int, err error) {
	places = map[string]int{}
	for s := range strings.Lines(text) {
		t, err := l.line(s)
		n := len(lines) + 1
		if err == nil && t.whole != "" {
			if first := places[t.whole]; first > 0 {
				err = fmt.Errorf("{{%s}} stands in line %d already", t.whole, first)
			}
			places[t.whole] = n
		}
		if err != nil {
			return nil, nil, fmt.Errorf("prompt line %d: %w", n, err)
		}
		lines = append(lines, t)
	}
	return lines, places, nil
}

// line reads one line.
func (l *layout) line(text string) (t templateLine, err error) {
	literal := ""
	add := func() {
		if literal != "" {
			t.pieces = append(t.pieces, piece{literal, -1})
		}
		literal = ""
	}
	for rest := text; rest != ""; {
		before, behind, found := strings.Cut(rest, "{{")
		literal += before
		switch {
		case !found:
			rest = ""
		case strings.HasPrefix(behind, "{{"):
			literal += "{{"
			rest = behind[2:]
		case strings.HasPrefix(behind, "{"):
			literal += "{"
			rest = "{" + behind
		default:
			var name string
			var quoted bool
			if name, quoted, rest, err = templateName(behind); err != nil {
				return t, err
			}
			if !quoted && (name == allMark || name == blocksMark && l.hasBlocks) {
				if strings.TrimSpace(before+rest) != "" || t.pieces != nil || strings.TrimSpace(literal) != "" {
					return t, fmt.Errorf("{{%s}} must stand on a line of its own", name)
				}
				return templateLine{whole: name}, nil
			}
			column, err := l.column(name)
			if err != nil {
				return t, err
			}
			add()
			t.pieces = append(t.pieces, piece{"", column})
		}
	}
	add()
	return t, nil
}

// errLiteral is what helps if braces were not meant to be a name.
var errLiteral = errors.New("(two braces that are text are written {{{{)")

// templateName reads what follows two braces: a name, or a JSON string, and two braces.
func templateName(text string) (name string, quoted bool, rest string, err error) {
	trimmed := strings.TrimLeft(text, " \t")
	if !strings.HasPrefix(trimmed, `"`) {
		name, rest, closed := strings.Cut(text, "}}")
		if !closed {
			return "", false, "", fmt.Errorf("{{%s has no }} %w", shorten(strings.TrimSpace(text)), errLiteral)
		}
		return strings.TrimSpace(name), false, rest, nil
	}
	in := json.NewDecoder(strings.NewReader(trimmed))
	if err := in.Decode(&name); err != nil {
		return "", true, "", fmt.Errorf("{{%s is not a JSON string %w", shorten(strings.TrimSpace(trimmed)), errLiteral)
	}
	rest, closed := strings.CutPrefix(strings.TrimLeft(trimmed[in.InputOffset():], " \t"), "}}")
	if !closed {
		return "", true, "", fmt.Errorf("{{%s: there is no }} behind the name %w", shorten(strings.TrimSpace(trimmed)), errLiteral)
	}
	return name, true, rest, nil
}

// column returns the place of a column that a prompt names.
func (l *layout) column(name string) (int, error) {
	at := slices.Index(l.columns, name)
	switch {
	case at >= 0 && at == l.blocks:
		return 0, fmt.Errorf("column %q holds the blocks, which stand at {{blocks}} on a line of its own", name)
	case at >= 0:
		return at, nil
	case name == blocksMark:
		return 0, fmt.Errorf("{{blocks}}: the prompt has no blocks, and the table no column of this name; it has %s", quoteAll(l.columns))
	}
	for _, c := range l.columns {
		if strings.TrimSpace(c) == name {
			return 0, fmt.Errorf("there is no column %q; column %q has white space around its name, write {{%q}}", name, c, c)
		}
	}
	err := unknownColumn(name, l.columns)
	if strings.ContainsAny(name, `{":`) || name == "" {
		err = fmt.Errorf("%w %w", err, errLiteral)
	}
	return 0, err
}
