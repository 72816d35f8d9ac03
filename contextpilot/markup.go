package contextpilot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/notes"
)

// The markup in which blocks stand in a prompt:
//
//	<doc LABEL>
//	text
//	</doc>
//
// A text that itself contains "<doc" or "</doc", in any case, or what has the form of a note, is fenced: the opening tag
// carries a word that does not occur in the text, and only the closing tag with that word ends the block. So a block is always sent
// unchanged, its bytes depend on the block alone, and nothing in it can end it, open another block, or stand
// outside as a reference.
const (
	openTag  = "<doc "
	closeTag = "</doc"
	fenceKey = " fence="
)

// noteForms are the forms of the notes that a pilot writes.
type noteForms []notes.Form

func formsOf(n Notes) noteForms {
	return noteForms{notes.FormOf(n.Order, "order"), notes.FormOf(n.TopOrder, "order"), notes.FormOf(n.Location, "order")}
}

// renderBlock returns the block as it stands in a prompt, with its line feed.
func renderBlock(forms noteForms, label, text string) string {
	if f := fence(forms, text); f != "" {
		return openTag + label + fenceKey + f + ">\n" + text + "\n</doc " + f + ">\n"
	}
	return openTag + label + ">\n" + text + "\n</doc>\n"
}

// fence returns "" for a text without markup and notes, otherwise a word made from the text that does not occur in it.
func fence(forms noteForms, text string) string {
	if !hasMarkup(text) && !slices.ContainsFunc(forms, func(f notes.Form) bool { return f.In(text) }) {
		return ""
	}
	h := xxh3.HashString(text)
	for {
		f := strconv.FormatUint(h, 36)
		if !strings.Contains(text, f) {
			return f
		}
		h = h*0x9E3779B97F4A7C15 + 1
	}
}

// hasMarkup looks for "<doc" and "</doc" in any case.
func hasMarkup(text string) bool {
	for {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			return false
		}
		text = strings.TrimPrefix(text[i+1:], "/")
		if len(text) >= 3 && strings.EqualFold(text[:3], "doc") {
			return true
		}
	}
}

// region is a rendered block found in a text; text[start:end] runs from the opening to the closing tag, without
// the line feed behind it.
type region struct {
	label      string
	text       string
	start, end int
}

// scanBlocks calls yield for every rendered block that stands in text, outside of other blocks, from left to
// right, until yield returns false. Markup that is not closed is passed over. Linear in the text's length.
func scanBlocks(text string, yield func(region) bool) {
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
		at = r.end
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
const maxHead = maxLabel + 256

// parseBlock reads the block that opens at text[at:]. Missed tells that its closing tag was looked for in vain;
// with closings, if not nil, that is known without looking.
func parseBlock(text string, at int, closings map[string]int) (r region, missed, ok bool) {
	head := text[at+len(openTag):]
	eol := strings.IndexByte(head[:min(len(head), maxHead)], '\n')
	if eol < 1 || head[eol-1] != '>' {
		return region{}, false, false
	}
	label, f, _ := strings.Cut(head[:eol-1], fenceKey)
	if label == "" || strings.ContainsAny(label, " <>") || strings.ContainsAny(f, " <>") {
		return region{}, false, false
	}
	body := at + len(openTag) + eol + 1
	end := closeTag + ">"
	if f != "" {
		end = closeTag + " " + f + ">"
	}
	if last, found := closings[f]; closings != nil && (!found || last < body-1) {
		return region{}, true, false
	}
	n := strings.Index(text[body-1:], "\n"+end)
	if n < 0 {
		return region{}, true, false
	}
	stop := body - 1 + n
	r = region{label: label, start: at, end: stop + 1 + len(end)}
	if stop >= body { // an empty text shares its line feed with the opening tag only in foreign markup
		r.text = text[body:stop]
	}
	return r, false, true
}

// visible are the blocks that stand in messages.
type visible struct {
	texts map[named]string
	many  map[string]int // how many different texts each label is the name of
}

// named is a text under a label.
type named struct {
	label   string
	content content
}

// has reports whether the block stands there.
func (v *visible) has(label string, c content) bool {
	_, ok := v.texts[named{label, c}]
	return ok
}

// only reports whether the block stands there, and no other text under its label.
func (v *visible) only(label, text string, c content) bool {
	there, ok := v.texts[named{label, c}]
	return ok && there == text && v.many[label] == 1
}

// visibleIn returns the blocks that stand in the texts, in one pass.
func visibleIn(texts []string) (v visible) {
	for _, t := range texts {
		scanBlocks(t, func(r region) bool {
			if v.texts == nil {
				v = visible{texts: map[named]string{}, many: map[string]int{}}
			}
			if x := (named{r.label, contentOf(r.text)}); !v.has(x.label, x.content) {
				v.texts[x] = r.text
				v.many[r.label]++
			}
			return true
		})
	}
	return v
}
