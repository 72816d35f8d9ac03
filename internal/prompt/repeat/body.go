package repeat

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/base/strictjson"
)

// members of JSON that hold a tool's words, the first of them that is long enough.
var members = []string{"content", "output", "result", "text", "stdout"}

// body says where in a text its lines stand. The lines themselves are looked for each time: a list of them takes many
// times the memory of a text whose lines are short.
type body struct {
	raw      string
	from, to int  // the lines' bytes
	quoted   bool // they stand inside a JSON string
	marked   bool // some of them have IDs that do not count
}

// bodyOf returns the lines of a text, or of the member that holds them if it is JSON.
func bodyOf(t Text) body {
	b := body{raw: t.Text, to: len(t.Text)}
	if t.Kind == ToolResult {
		if m, ok := memberOf(t.Text); ok {
			b = m
		}
	}
	b.marked = hasExternal(t.Text)
	return b
}

// compared returns what a range of whole lines says, without what does not count when it is compared.
func (b body) compared(from, to int) string {
	if b.marked {
		return WithoutIDs(b.text(from, to))
	}
	return b.text(from, to)
}

// external are the marks by which some clients set off what is from outside. Their IDs are random, so that what they set off
// cannot hold the closing one: they stay in the text, and only comparisons leave them out.
var external = regexp.MustCompile(`((?:<|\\+u003[cC]){3}(?:END_)?EXTERNAL_UNTRUSTED_CONTENT) id=\\*"[0-9A-Fa-f]+\\*"((?:>|\\+u003[eE]){3})`)

func hasExternal(text string) bool { return strings.Contains(text, "EXTERNAL_UNTRUSTED_CONTENT id=") }

// WithoutIDs returns a text as it is compared with others: without the random IDs of marks of external content.
func WithoutIDs(text string) string {
	if !hasExternal(text) {
		return text
	}
	return external.ReplaceAllString(text, "$1$2")
}

// memberOf returns the lines of the member that holds them if text is a JSON object.
func memberOf(text string) (body, bool) {
	object := strings.TrimFunc(text, isSpace)
	if !strings.HasPrefix(object, "{") || !json.Valid([]byte(object)) {
		return body{}, false
	}
	found := map[string]gjson.Result{} // of two members with one name the last one counts
	gjson.Parse(object).ForEach(func(name, value gjson.Result) bool {
		found[name.Str] = value
		return true
	})
	indent := len(text) - len(strings.TrimLeftFunc(text, isSpace))
	for _, name := range members {
		v, ok := found[name]
		if !ok || v.Type != gjson.String || runes(v.Str) < minText {
			continue
		}
		start := indent + v.Index + 1
		return body{raw: text, from: start, to: start + len(v.Raw) - 2, quoted: true}, true
	}
	return body{}, false
}

// line returns the end of the line that begins at a byte, and where the next one begins; -1 if there is none. Line ends
// of a JSON string are looked for before anything is decoded, so each line is known by its own bytes, and those that stay
// need not be written anew.
func (b body) line(at int) (end, next int) {
	if !b.quoted {
		if i := strings.IndexByte(b.raw[at:b.to], '\n'); i >= 0 {
			return at + i, at + i + 1
		}
		return b.to, -1
	}
	for i := at; ; {
		backslash := strings.IndexByte(b.raw[i:b.to], '\\')
		if backslash < 0 {
			return b.to, -1
		}
		i += backslash
		switch {
		case b.raw[i+1] == 'n':
			return i, i + len(`\n`)
		case b.raw[i+1] == 'u' && strings.EqualFold(b.raw[i+2:i+6], "000a"):
			return i, i + len(`\u000a`)
		}
		i += 2
	}
}

// count returns the number of lines, as far as it is at most most, and most+1 if there are more.
func (b body) count(most int) int {
	n := 0
	for at := b.from; at >= 0 && n <= most; n++ {
		_, at = b.line(at)
	}
	return n
}

// text returns what a range of whole lines says.
func (b body) text(from, to int) string {
	if !b.quoted || strings.IndexByte(b.raw[from:to], '\\') < 0 {
		return b.raw[from:to]
	}
	b.to = to
	var w strings.Builder
	w.Grow(to - from) // words are no longer than what is written for them
	for at := from; ; {
		end, next := b.line(at)
		w.WriteString(unquote(b.raw[at:end]))
		if next < 0 {
			return w.String()
		}
		w.WriteByte('\n')
		at = next
	}
}

// unquote decodes a part of a JSON string.
func unquote(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw
	}
	var s string
	if json.Unmarshal([]byte(`"`+raw+`"`), &s) != nil {
		return raw // cannot be: the string that it is a part of is JSON
	}
	return s
}

// quote returns words as they are written in the body.
func (b body) quote(words string) string {
	if !b.quoted {
		return words
	}
	s := strictjson.Quote(words)
	return s[1 : len(s)-1]
}
