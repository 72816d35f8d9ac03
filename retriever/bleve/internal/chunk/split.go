package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// pieces cuts one paragraph or code block that is larger than room; a smaller one is returned whole.
func pieces(src string, a span, room, limit int) []span {
	switch {
	case a.size() <= room, a.code && a.size() <= limit:
		return []span{a}
	case a.code:
		return codeLines(src, a, room, limit)
	}
	var out []span
	for at := a.start; at < a.end; {
		end := sentenceEnd(src, at, a.end)
		out = append(out, fit(src, span{start: at, end: end}, room, limit)...)
		at = skipSpace(src, end, a.end)
	}
	return out
}

// codeLines cuts a code block between lines. Blank lines are no pieces; they stay inside when their
// neighbours are packed together.
func codeLines(src string, a span, room, limit int) []span {
	var out []span
	for ln := range lines(src[a.start:a.end]) {
		ln.start, ln.end = ln.start+a.start, ln.end+a.start
		if !isBlank(src[ln.start:ln.end]) {
			out = append(out, fit(src, ln, room, limit)...)
		}
	}
	return out
}

// fit returns s whole if it is at most limit bytes, otherwise cut after words, or between characters where
// there is no white space to cut at.
func fit(src string, s span, room, limit int) []span {
	if s.size() <= limit {
		return []span{s}
	}
	var out []span
	for s.size() > room {
		cut := s.start + room
		for !utf8.RuneStart(src[cut]) {
			cut--
		}
		// Looking back for a space is limited to half the room, so that pieces do not become tiny.
		if i := strings.LastIndexFunc(src[s.start+room/2:cut], unicode.IsSpace); i >= 0 {
			cut = s.start + room/2 + i
		}
		end := s.start + len(strings.TrimRightFunc(src[s.start:cut], unicode.IsSpace))
		if end > s.start {
			out = append(out, span{start: s.start, end: end})
		}
		s.start = skipSpace(src, cut, s.end)
	}
	if s.size() > 0 {
		out = append(out, s)
	}
	return out
}

// skipSpace returns the first position from at on, below end, that is not white space; a line's indentation
// is kept with the line.
func skipSpace(src string, at, end int) int {
	n := at + len(src[at:end]) - len(strings.TrimLeftFunc(src[at:end], unicode.IsSpace))
	if i := strings.LastIndexByte(src[at:n], '\n'); i >= 0 && n < end {
		return at + i + 1
	}
	return n
}
