package batch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Prompt says what is asked of every row.
type Prompt struct {
	// System is the system message; empty: there is none. It is the same for all rows, so no column can stand in it.
	System string `json:",omitempty"`
	// Text is what the user's message says, with columns in double braces: {{city}}.
	//
	// A line with columns is a unit. The units of a row may change places if Order says so. {{*}} on a line of its own stands for a line
	// "column: cell" for each column that the text does not name. A text that names nothing is followed by an empty line and {{*}}. What
	// stands in front of the first unit and behind the last one stays there. With other text between units all of them keep their places;
	// empty lines between units go with the unit in front of them.
	//
	// A unit ends with a line feed, also the last one. CRLF is read as LF. A cell stands in the prompt as it is, with its line feeds; an empty
	// cell and a NULL are nothing.
	//
	// White space around a name in braces does not count. A name may be a JSON string, {{" city"}}; so written, {{"*"}} and {{"blocks"}} are
	// columns. {{{{ stands for {{, and {{{ for a brace and the beginning of a name. Single braces and }} are ordinary text.
	Text string
	// Columns are those that {{*}} stands for, in the order of the table; empty: all but Blocks.
	Columns []string `json:",omitempty"`
	// Blocks is the column that holds retrieved blocks: a text, or a JSON list of texts or of objects with "text" (or "content" or
	// "page_content") and maybe "id". Each block is a unit. They stand where Text has {{blocks}} on a line of its own, else behind the last
	// line with columns. An empty cell has no blocks. Empty: there is no such column.
	Blocks string `json:",omitempty"`
	// Examples are rows with their answers. They stand between what is in front of the units and the units, the same in all prompts. Each is
	// written like the prompt of a row, with what stands behind the units and then its answer; if nothing stands there, "Answer:" does,
	// also at the end of the prompt.
	Examples []Example `json:",omitempty"`
	// Order says which orders are allowed: [PerRow], [Fixed] or [AsIs]. Empty: [DefaultOrder].
	Order Order `json:",omitempty"`
}

// Example is a row with its answer.
type Example struct {
	Cells  map[string]string // by column; each column that stands in prompts must be there, and others are ignored
	Answer string
}

// DefaultOrder is the order of prompts that name none. Another one saves more, and may change answers: see [Report].PerRow.
const DefaultOrder = AsIs

// piece is a part of a line: a text, or the cell of a column.
type piece struct {
	text   string
	column int // -1: text
}

// line is what makes a unit, or a unit for each block.
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
			return nil, fmt.Errorf("blocks: %w", unknownColumn(p.Blocks, columns))
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
	if err := l.checkTexts(p); err != nil {
		return nil, err
	}
	for _, c := range p.Columns {
		switch at := slices.Index(columns, c); {
		case at < 0:
			return nil, fmt.Errorf("columns: %w", unknownColumn(c, columns))
		case at == l.blocks:
			return nil, fmt.Errorf("columns: %q holds the blocks, which stand at {{blocks}}", c)
		}
	}
	if err := l.read(p); err != nil {
		return nil, err
	}
	return l, l.addExamples(p.Examples)
}

// checkTexts refuses texts that cannot be sent as they are, and columns where none can stand.
func (l *layout) checkTexts(p *Prompt) error {
	texts := map[string]string{"prompt": p.Text, "system": p.System}
	for i, e := range p.Examples {
		texts[fmt.Sprintf("answer of example %d", i+1)] = e.Answer
		for name, cell := range e.Cells {
			texts[fmt.Sprintf("example %d, column %q", i+1, name)] = cell
		}
	}
	for _, what := range slices.Sorted(maps.Keys(texts)) {
		if !utf8.ValidString(texts[what]) {
			return fmt.Errorf("%s: the text is not UTF-8", what)
		}
	}
	if mark := l.markIn(p.System); mark != "" {
		return fmt.Errorf("system: %s stands there, but it is the same for all rows; columns stand in the text of the prompt", mark)
	}
	return nil
}

// markIn returns the first mark in a text that would be replaced in the text of a prompt; empty: there is none.
func (l *layout) markIn(text string) string {
	for at := strings.Index(text, "{{"); at >= 0; {
		behind := text[at+2:]
		name, _, rest, err := templateName(behind)
		if err == nil && (name == allMark || name == blocksMark || slices.ContainsFunc(l.columns, func(c string) bool {
			return c == name || strings.TrimSpace(c) == name
		})) {
			return text[at : len(text)-len(rest)]
		}
		next := strings.Index(text[at+1:], "{{") // {{{ may be a brace and the beginning of a name
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return ""
}

// answerLabel stands in front of the answers of examples, and at the end of a prompt that has examples.
const answerLabel = "Answer:"

func unknownColumn(name string, columns []string) error {
	return fmt.Errorf("there is no column %q; the table has %s", shorten(name), quoteAll(columns))
}

// quoteAll lists names for an error.
func quoteAll(names []string) string {
	const most = 40
	if len(names) == 0 {
		return "no columns"
	}
	var b strings.Builder
	for i, n := range names {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(names)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", shorten(n))
	}
	return b.String()
}

func (p piece) isCell() bool { return p.column >= 0 }

// units returns the units of a row, in the order of the prompt. Blocks are read from their column, if there is one.
func (l *layout) units(cells []string, blocks []contextpilot.Block) ([]string, error) {
	units := make([]string, 0, len(l.lines))
	var b strings.Builder
	for _, line := range l.lines {
		if !line.blocks {
			b.Reset()
			for _, p := range line.pieces {
				if p.isCell() {
					b.WriteString(cells[p.column])
				} else {
					b.WriteString(p.text)
				}
			}
			units = append(units, b.String())
			continue
		}
		if l.blocks >= 0 {
			var err error
			if blocks, err = readBlocks(cells[l.blocks]); err != nil {
				return nil, fmt.Errorf("column %q: %w", l.columns[l.blocks], err)
			}
		}
		for _, block := range blocks {
			units = append(units, l.render(block))
		}
	}
	return units, nil
}

// render returns a block as prompts of the library have it. Each is planned alone, so that none is left out as a repeat.
func (l *layout) render(block contextpilot.Block) string {
	plan := l.pilot.Plan(contextpilot.Request{Blocks: []contextpilot.Block{block}})
	return plan.RenderFull(0)
}

// addExamples puts rows with their answers behind the head. Each stands there as the prompt of a row does, up to its answer.
func (l *layout) addExamples(examples []Example) error {
	if len(examples) == 0 {
		return nil
	}
	if strings.TrimSpace(l.tail) == "" {
		l.tail += answerLabel
	}
	behind := l.tail
	if strings.TrimRight(behind, " \t\n") == behind {
		behind += " "
	}
	var b strings.Builder
	for i, e := range examples {
		cells, err := l.exampleCells(e)
		if err != nil {
			return fmt.Errorf("example %d: %w", i+1, err)
		}
		units, err := l.units(cells, nil)
		if err != nil {
			return fmt.Errorf("example %d: %w", i+1, err)
		}
		b.WriteString(strings.Join(units, "") + behind + e.Answer + "\n\n")
	}
	l.head += b.String()
	return nil
}

// exampleCells returns the cells of an example in the order of the table. Those of columns that do not stand in prompts are empty.
func (l *layout) exampleCells(e Example) ([]string, error) {
	cells := make([]string, len(l.columns))
	if l.blocks >= 0 {
		cells[l.blocks] = e.Cells[l.columns[l.blocks]]
	}
	for _, line := range l.lines {
		for _, p := range line.pieces {
			if !p.isCell() {
				continue
			}
			cell, ok := e.Cells[l.columns[p.column]]
			if !ok {
				return nil, fmt.Errorf("it has no column %q", l.columns[p.column])
			}
			cells[p.column] = cell
		}
	}
	return cells, nil
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
