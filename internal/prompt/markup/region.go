package markup

import (
	"iter"
	"strings"
)

// MaxLabel is the length of a label in bytes, at most.
const MaxLabel = 64

// Region is a rendered block that was found in a text: text[Start:End] runs from its opening to its closing tag, without the
// line feed behind it.
type Region struct {
	Label, Text string
	Start, End  int
	// Echo says that it is a part of a block that stands elsewhere, see [RenderEcho].
	Echo bool
}

// Regions walks over the rendered blocks that stand in a text, outside of other blocks, from left to right. Echoes and markup that is not
// closed are passed over. Linear in the length of the text.
func Regions(text string) iter.Seq[Region] {
	return func(yield func(Region) bool) {
		for r := range All(text) {
			if !r.Echo && !yield(r) {
				return
			}
		}
	}
}

// All is [Regions] with the echoes.
func All(text string) iter.Seq[Region] {
	return func(yield func(Region) bool) {
		var closings map[string]int // where the last closing tag of each word is; made when one is first missed
		for at := 0; ; {
			i := strings.Index(text[at:], openTag)
			if i < 0 {
				return
			}
			at += i
			r, missed, ok := parseBlock(text, at, closings)
			if !ok {
				if missed && closings == nil {
					closings = lastClosings(text)
				}
				at += len(openTag)
				continue
			}
			if !yield(r) {
				return
			}
			at = r.End
		}
	}
}

// lastClosings returns where the last closing tag of each fence word begins in text.
func lastClosings(text string) map[string]int {
	last := map[string]int{}
	for at := 0; ; {
		i := strings.Index(text[at:], "\n"+closeTag)
		if i < 0 {
			return last
		}
		tag := at + i
		at = tag + 1 + len(closeTag)
		rest := text[at:min(len(text), at+maxHead)]
		switch end := strings.IndexByte(rest, '>'); {
		case end == 0:
			last[""] = tag
		case end > 1 && rest[0] == ' ':
			last[rest[1:end]] = tag
		}
	}
}

// maxHead is the length in bytes up to which an opening tag is read.
const maxHead = MaxLabel + 256

// parseBlock reads the block that opens at text[at:]. Missed: its closing tag was looked for in vain;
// with closings, if not nil, that is known without looking.
func parseBlock(text string, at int, closings map[string]int) (r Region, missed, ok bool) {
	head := text[at+len(openTag):]
	eol := strings.IndexByte(head[:min(len(head), maxHead)], '\n')
	if eol < 1 || head[eol-1] != '>' {
		return Region{}, false, false
	}
	label, f, _ := strings.Cut(head[:eol-1], fenceKey)
	label, echo := strings.CutSuffix(label, echoKey)
	if label == "" || strings.ContainsAny(label, " <>") || strings.ContainsAny(f, " <>") {
		return Region{}, false, false
	}
	body := at + len(openTag) + eol + 1
	end := closeTag + ">"
	if f != "" {
		end = closeTag + " " + f + ">"
	}
	if last, found := closings[f]; closings != nil && (!found || last < body-1) {
		return Region{}, true, false
	}
	n := strings.Index(text[body-1:], "\n"+end)
	if n < 0 {
		return Region{}, true, false
	}
	stop := body - 1 + n
	r = Region{Label: label, Start: at, End: stop + 1 + len(end), Echo: echo}
	if stop >= body { // an empty text shares its line feed with the opening tag only in foreign markup
		r.Text = text[body:stop]
	}
	return r, false, true
}
