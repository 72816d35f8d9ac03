package batch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Prompt says what is asked of every row.
type Prompt struct {
	// System is the system message; empty: there is none.
	System string `json:",omitempty"`
	// Text is what the user's message says, with columns in double braces: {{city}}. A line with columns is a unit: units of a row may
	// change places, unless Order says otherwise. {{*}} on a line of its own stands for a line "column: cell" for each column that the text does
	// not name. A text without columns is followed by {{*}}. What stands in front of the first unit and behind the last stays there. With
	// other text between units all of them keep their places.
	Text string
	// Columns are those that {{*}} stands for; nil: all but Blocks.
	Columns []string `json:",omitempty"`
	// Blocks is the column that holds retrieved blocks: a text, or a JSON list of texts or of objects with "text" (or "content" or
	// "page_content") and maybe "id". Each block is a unit. They stand where Text has {{blocks}}, else behind the other units. Empty: none.
	Blocks string `json:",omitempty"`
	// Examples are rows with their answers. They stand between what is in front of the units and the units, the same in all prompts.
	Examples []Example `json:",omitempty"`
	// Order says which orders are allowed: [PerRow], [Fixed] or [AsIs]. Empty: [DefaultOrder].
	Order Order `json:",omitempty"`
}

// Example is a row with its answer.
type Example struct {
	Cells  map[string]string // by column; each column of the prompt must be there
	Answer string
}

// DefaultOrder is the order of prompts that name none. Another one saves more, and may change answers: see [Report].PerRow.
const DefaultOrder = AsIs

// piece is a part of a line: a text, or the cell of a column.
type piece struct {
	text   string
	column int // -1: text
}

// line is what makes a unit, or for blocks some.
type line struct {
	pieces []piece
	blocks bool
}

// layout is a prompt that was checked against the columns of a table.
type layout struct {
	system, head, tail string
	lines              []line
	columns            []string // of the table
	hasBlocks          bool
	blocks             int // column of the blocks; -1: none, or they come from a retriever
	order              Order
	inPlace            string // why units keep their places although the prompt does not ask for that
	pilot              *contextpilot.Pilot
}

// layout checks a prompt against the columns of a table.
func (p *Prompt) layout(columns []string, retrieved bool) (*layout, error) {
	l := &layout{system: p.System, columns: columns, blocks: -1, order: p.Order, hasBlocks: retrieved || p.Blocks != ""}
	if l.order == "" {
		l.order = DefaultOrder
	}
	if !slices.Contains([]Order{PerRow, Fixed, AsIs}, l.order) {
		return nil, fmt.Errorf("order %q: want %s, %s or %s", l.order, PerRow, Fixed, AsIs)
	}
	if p.Blocks != "" {
		if l.blocks = slices.Index(columns, p.Blocks); l.blocks < 0 {
			return nil, unknownColumn("blocks", p.Blocks, columns)
		}
	}
	if l.hasBlocks {
		var err error
		if l.pilot, err = contextpilot.New(contextpilot.Config{Policy: "retrieval", MaxRequests: 1}); err != nil {
			return nil, err
		}
		if l.order == Fixed {
			return nil, fmt.Errorf("order %q: rows with blocks have no columns in common, want %s or %s", l.order, PerRow, AsIs)
		}
	}
	for _, c := range p.Columns {
		if !slices.Contains(columns, c) {
			return nil, unknownColumn("columns", c, columns)
		}
	}
	if err := l.read(p); err != nil {
		return nil, err
	}
	examples, err := l.examples(p.Examples)
	l.head += examples
	if len(p.Examples) > 0 && l.tail == "" {
		l.tail = answerLabel
	}
	return l, err
}

// answerLabel stands in front of the answers of examples, and at the end of a prompt that has examples.
const answerLabel = "Answer:"

func unknownColumn(field, name string, columns []string) error {
	return fmt.Errorf("%s: there is no column %q; the table has %s", field, name, quoteAll(columns))
}

// quoteAll lists names for an error.
func quoteAll(names []string) string {
	const most = 40
	var b strings.Builder
	for i, n := range names {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(names)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", n)
	}
	return b.String()
}

// read cuts the text of a prompt into head, lines and tail.
func (l *layout) read(p *Prompt) error {
	const all, blocks = "*", "blocks"
	type read struct {
		pieces []piece
		whole  string // "*" or "blocks": what the line consists of
		text   string
	}
	var lines []read
	named, places := map[int]bool{}, map[string]int{}
	for n, text := range strings.SplitAfter(p.Text, "\n") {
		pieces, err := l.pieces(text, n+1, l.hasBlocks)
		if err != nil {
			return err
		}
		r := read{pieces: pieces, text: text}
		if trimmed := strings.TrimSpace(text); trimmed == "{{*}}" || trimmed == "{{blocks}}" && l.hasBlocks {
			r.whole = trimmed[2 : len(trimmed)-2]
			if places[r.whole]++; places[r.whole] > 1 {
				return fmt.Errorf("prompt line %d: %s stands there for the second time", n+1, trimmed)
			}
		}
		for _, q := range pieces {
			if q.column >= 0 {
				named[q.column] = true
			}
		}
		lines = append(lines, r)
	}
	if len(named) == 0 && places[all] == 0 {
		text := p.Text
		if text != "" {
			text = strings.TrimRight(text, "\n") + "\n\n"
		}
		lines = []read{{text: text, pieces: []piece{{text, -1}}}, {whole: all}}
		if places[blocks] > 0 {
			return fmt.Errorf("prompt: it has {{%s}} and no column; name columns, or {{*}}", blocks)
		}
	}
	if l.hasBlocks && places[blocks] == 0 {
		at := len(lines)
		for at > 0 && lines[at-1].whole == "" && !slices.ContainsFunc(lines[at-1].pieces, piece.isCell) {
			at--
		}
		lines = slices.Insert(lines, at, read{whole: blocks})
	}
	var between strings.Builder
	for _, r := range lines {
		var units []line
		switch {
		case r.whole == all:
			units = l.all(p.Columns, named)
		case r.whole == blocks:
			units = []line{{blocks: true}}
		case slices.ContainsFunc(r.pieces, piece.isCell):
			last := &r.pieces[len(r.pieces)-1]
			if !strings.HasSuffix(r.text, "\n") { // units of which any may be the last all end their line
				if last.isCell() {
					r.pieces = append(r.pieces, piece{"\n", -1})
				} else {
					last.text += "\n"
				}
			}
			units = []line{{pieces: r.pieces}}
		default:
			between.WriteString(r.text)
			continue
		}
		text := between.String()
		between.Reset()
		switch {
		case len(l.lines) == 0:
			l.head = text
		case strings.TrimSpace(text) != "" && len(units) > 0:
			l.inPlace = fmt.Sprintf("the prompt has text between its columns (%q)", shorten(strings.TrimSpace(text)))
		}
		if len(l.lines) > 0 && text != "" && len(units) > 0 {
			units[0].pieces = append([]piece{{text, -1}}, units[0].pieces...)
		}
		l.lines = append(l.lines, units...)
	}
	l.tail = between.String()
	if len(l.lines) == 0 {
		return fmt.Errorf("prompt: it names no column of %s", quoteAll(l.columns))
	}
	return nil
}

func (p piece) isCell() bool { return p.column >= 0 }

// all returns a line for each column that is not named elsewhere.
func (l *layout) all(chosen []string, named map[int]bool) []line {
	var lines []line
	for i, c := range l.columns {
		if i == l.blocks || named[i] || chosen != nil && !slices.Contains(chosen, c) {
			continue
		}
		lines = append(lines, line{pieces: []piece{{c + ": ", -1}, {"", i}, {"\n", -1}}})
	}
	return lines
}

// pieces reads one line of a prompt.
func (l *layout) pieces(text string, number int, blocks bool) ([]piece, error) {
	var pieces []piece
	for rest := text; rest != ""; {
		before, behind, ok := strings.Cut(rest, "{{")
		if !ok {
			return append(pieces, piece{rest, -1}), nil
		}
		name, after, closed := strings.Cut(behind, "}}")
		if !closed {
			return nil, fmt.Errorf("prompt line %d: {{%s has no }}", number, shorten(strings.TrimSpace(behind)))
		}
		if before != "" {
			pieces = append(pieces, piece{before, -1})
		}
		rest = after
		name = strings.TrimSpace(name)
		switch at := slices.Index(l.columns, name); {
		case at >= 0:
			pieces = append(pieces, piece{"", at})
		case (name == "*" || name == "blocks" && blocks) && strings.TrimSpace(text) == "{{"+name+"}}":
			return nil, nil // a line of its own
		case name == "*" || name == "blocks" && blocks:
			return nil, fmt.Errorf("prompt line %d: {{%s}} must stand on a line of its own", number, name)
		default:
			return nil, unknownColumn(fmt.Sprintf("prompt line %d", number), name, l.columns)
		}
	}
	return pieces, nil
}

// units returns the units of a row, in the order of the prompt. Blocks are read from their column, if there is one.
func (l *layout) units(cells []string, blocks []contextpilot.Block) ([]string, error) {
	units := make([]string, 0, len(l.lines))
	var b strings.Builder
	for _, line := range l.lines {
		b.Reset()
		for _, p := range line.pieces {
			if p.isCell() {
				b.WriteString(cells[p.column])
			} else {
				b.WriteString(p.text)
			}
		}
		if !line.blocks {
			units = append(units, b.String())
			continue
		}
		if l.blocks >= 0 {
			var err error
			if blocks, err = readBlocks(cells[l.blocks]); err != nil {
				return nil, fmt.Errorf("column %q: %w", l.columns[l.blocks], err)
			}
		}
		for i, block := range blocks {
			text := l.render(block)
			if i == 0 {
				text = b.String() + text
			}
			units = append(units, text)
		}
	}
	return units, nil
}

// render returns a block as prompts of the library have it. Each is planned alone, so that none is left out as a repeat.
func (l *layout) render(block contextpilot.Block) string {
	plan := l.pilot.Plan(contextpilot.Request{Blocks: []contextpilot.Block{block}})
	return plan.RenderFull(0)
}

// of returns the columns in a line.
func (l line) of() []int {
	var columns []int
	for _, p := range l.pieces {
		if p.isCell() {
			columns = append(columns, p.column)
		}
	}
	return columns
}

// examples renders rows with their answers.
func (l *layout) examples(examples []Example) (string, error) {
	var b strings.Builder
	for i, e := range examples {
		cells := make([]string, len(l.columns))
		for _, line := range l.lines {
			for _, c := range line.of() {
				cell, ok := e.Cells[l.columns[c]]
				if !ok {
					return "", fmt.Errorf("example %d: it has no column %q", i+1, l.columns[c])
				}
				cells[c] = cell
			}
		}
		if l.blocks >= 0 {
			cells[l.blocks] = e.Cells[l.columns[l.blocks]]
		}
		units, err := l.units(cells, nil)
		if err != nil {
			return "", fmt.Errorf("example %d: %w", i+1, err)
		}
		b.WriteString(strings.Join(units, ""))
		b.WriteString(answerLabel + " " + e.Answer + "\n\n")
	}
	return b.String(), nil
}

// shorten makes a value fit into an error.
func shorten(s string) string {
	const most = 40
	for i := range s {
		if i >= most {
			return s[:i] + "…"
		}
	}
	return s
}
