package chunk

import "strings"

// section is the text under one heading, up to the next heading of any level.
type section struct {
	path  []string
	level int // of the heading; 0 before the first one
	at    int // where the heading ends: the place of a chunk that has no body
	atoms []span
}

// heading is an entry of the stack of open headings.
type heading struct {
	level int
	title string
}

// Markdown cuts a Markdown text at its headings (both the number-sign and the underlined form), then between
// paragraphs and fenced code blocks. src must have been through [Normalize].
func Markdown(src string, lim Limits) []Chunk {
	var out []Chunk
	secs := sections(src)
	for i, sec := range secs {
		if len(sec.atoms) > 0 {
			out = pack(out, src, sec, lim)
			continue
		}
		// A heading with nothing below it is kept by the deeper section that follows; if there is none, it
		// would be lost, so it becomes a passage of its own.
		parent := i+1 < len(secs) && secs[i+1].level > sec.level
		if sec.level > 0 && !parent {
			out = append(out, Chunk{Path: sec.path, Start: sec.at, End: sec.at})
		}
	}
	return out
}

// outline reads the structure of a text, line by line.
type outline struct {
	src      string
	sections []section
	open     []heading
	builder         // of the last section's atoms
	fence    string // the opening marker of the code block that is being read
	code     span
}

// sections returns the structure of src: which lines are headings, and the paragraphs and code below each.
func sections(src string) []section {
	o := outline{src: src, sections: []section{{}}}
	for ln := range lines(src) {
		o.line(ln)
	}
	if o.fence != "" { // never closed: as in CommonMark, it runs to the end
		o.atoms = append(o.atoms, o.code)
	}
	o.endSection()
	return o.sections
}

func (o *outline) line(ln span) {
	line := o.src[ln.start:ln.end]
	switch {
	case o.fence != "":
		if !isBlank(line) {
			o.code.end = ln.end
		}
		if closesFence(line, o.fence) {
			o.atoms, o.fence = append(o.atoms, o.code), ""
		}
		return
	case isBlank(line):
		o.flush()
		return
	case opensFence(line) != "":
		o.flush()
		o.fence, o.code = opensFence(line), span{start: ln.start, end: ln.end, code: true}
		return
	}
	if level, title := numberSign(line); level > 0 {
		o.heading(level, title, ln.end)
		return
	}
	para := o.src[o.para.start:o.para.end]
	if level := underline(line); level > 0 && o.lines == 1 && isTitle(para) {
		o.lines = 0 // the open paragraph was the heading
		o.heading(level, strings.TrimSpace(para), ln.end)
		return
	}
	o.extend(ln)
}

// heading begins a section.
func (o *outline) heading(level int, title string, at int) {
	o.endSection()
	for len(o.open) > 0 && o.open[len(o.open)-1].level >= level {
		o.open = o.open[:len(o.open)-1]
	}
	o.open = append(o.open, heading{level, title})
	path := make([]string, len(o.open))
	for i, h := range o.open {
		path[i] = h.title
	}
	o.sections = append(o.sections, section{path: path, level: level, at: at})
}

func (o *outline) endSection() {
	o.flush()
	o.sections[len(o.sections)-1].atoms = o.atoms
	o.builder = builder{}
}

// numberSign returns level and title of a line like "## Title", or 0.
func numberSign(line string) (level int, title string) {
	rest, ok := unindent(line)
	if !ok {
		return 0, ""
	}
	level = len(rest) - len(strings.TrimLeft(rest, "#"))
	if level < 1 || level > 6 {
		return 0, ""
	}
	rest = rest[level:]
	if rest == "" || (rest[0] != ' ' && rest[0] != '\t') {
		return 0, ""
	}
	title = strings.TrimSpace(rest)
	if bare := strings.TrimRight(title, "#"); bare == "" || strings.HasSuffix(bare, " ") || strings.HasSuffix(bare, "\t") {
		title = strings.TrimSpace(bare) // the closing marks of "## Title ##"
	}
	if title == "" || len(title) > maxHeading {
		return 0, "" // stays text: there is no title to carry, or too much of one
	}
	return level, title
}

// underline returns the level that a line of "===" or "---" gives to the line above it, or 0.
func underline(line string) int {
	rest, ok := unindent(line)
	rest = strings.TrimRight(rest, " \t")
	switch {
	case !ok || rest == "":
		return 0
	case strings.Trim(rest, "=") == "":
		return 1
	case strings.Trim(rest, "-") == "":
		return 2
	}
	return 0
}

// isTitle reports whether a single line may be the title above an underline; a list item, quotation or table
// row with a rule below it is not.
func isTitle(line string) bool {
	text, ok := unindent(line)
	return ok && len(strings.TrimSpace(text)) <= maxHeading && !startsItem(text) && strings.Trim(strings.TrimSpace(text), "-=") != ""
}

// unindent removes up to three spaces; with more the line is code and ok is false.
func unindent(line string) (rest string, ok bool) {
	rest = strings.TrimLeft(line, " ")
	return rest, len(line)-len(rest) <= 3
}

// opensFence returns the marker that begins a fenced code block, or "". Any indentation is allowed, as the
// block may be inside a list.
func opensFence(line string) string {
	text := strings.TrimLeft(line, " \t")
	for _, mark := range []string{"`", "~"} {
		n := len(text) - len(strings.TrimLeft(text, mark))
		if n >= 3 && (mark == "~" || !strings.Contains(text[n:], "`")) {
			return text[:n]
		}
	}
	return ""
}

// closesFence reports whether line ends the block that the marker fence opened.
func closesFence(line, fence string) bool {
	text := strings.TrimSpace(line)
	return len(text) >= len(fence) && strings.Trim(text, fence[:1]) == ""
}
