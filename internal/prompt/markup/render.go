package markup

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
)

const (
	openTag  = "<doc "
	closeTag = "</doc"
	echoKey  = " again"
	fenceKey = " fence="
)

// Render returns a block with its line feed. The label must have at most [MaxLabel] bytes, without spaces and markup. The text is
// fenced if it has markup, or if fenced asks for it.
func Render(label, text string, fenced bool) string {
	if fenced || In(text) {
		f := fence(text)
		return openTag + label + fenceKey + f + ">\n" + text + "\n</doc " + f + ">\n"
	}
	return openTag + label + ">\n" + text + "\n</doc>\n"
}

// RenderEcho returns a part of a block that is shown once more, with its line feed: as [Render] does, with a word in the opening tag.
func RenderEcho(label, text string, fenced bool) string {
	return openTag + label + echoKey + strings.TrimPrefix(Render(label, text, fenced), openTag+label)
}

// ourTag is what begins or ends a block, or nearly: a tag of that name, in any case.
var ourTag = regexp.MustCompile(`(?i)</?doc[\s>]`)

// RenderEchoIn returns a part of a block, without markup of its own, that is shown once more in a text that may have some, maybe unclosed:
// then it is fenced, and the fence's word stands nowhere in that text.
func RenderEchoIn(label, text, around string) string {
	if !ourTag.MatchString(around) {
		return RenderEcho(label, text, false)
	}
	f := fence(around + text)
	return openTag + label + echoKey + fenceKey + f + ">\n" + text + "\n</doc " + f + ">\n"
}

// fence returns a word made from a text that does not occur in it.
func fence(text string) string {
	h := xxh3.HashString(text)
	for {
		f := strconv.FormatUint(h, 36)
		if !strings.Contains(text, f) {
			return f
		}
		h = h*0x9E3779B97F4A7C15 + 1
	}
}

// In reports whether "<doc" or "</doc" stands in a text, in any case.
func In(text string) bool {
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
