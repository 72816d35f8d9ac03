package ragpilottest

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/prompt/gotemplate"
)

// Bytes of an excerpt in front of a difference and behind it.
const (
	quotedBefore = 32
	quotedBehind = 80
)

// excerpt quotes what stands around byte at of a text.
func excerpt(text string, at int) string {
	from, to := max(0, min(at, len(text))-quotedBefore), min(len(text), at+quotedBehind)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	out := quote(text[from:to])
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

// quote puts a text in quotes, in back quotes if it has others.
func quote(text string) string {
	if strings.Contains(text, `"`) && strconv.CanBackquote(text) {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

// place returns the action of a template that wrote the first difference of two texts.
func (rec *Recorder) place(is, was string) (gotemplate.Place, bool) {
	at := 0
	for at < len(is) && at < len(was) && is[at] == was[at] {
		at++
	}
	if p, ok := gotemplate.Find(rec.config.files, is, at); ok {
		return p, true
	}
	return gotemplate.Find(rec.config.files, was, at)
}
