package repeat

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// members of JSON that hold a tool's words, the first of them that is long enough.
var members = []string{"content", "output", "result", "text", "stdout"}

// span is a range of bytes.
type span struct{ start, end int }

// body is a text as lines: what they say, and where each stands in the text.
type body struct {
	raw    string
	lines  []string
	ranges []span // of raw, as many as there are lines, without what ends the line
	quoted bool   // the lines stand inside a JSON string
}

// quote returns words as they are written in the body.
func (b body) quote(words string) string {
	if !b.quoted {
		return words
	}
	var w strings.Builder
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	_ = e.Encode(words) // neither strings nor a Builder make errors
	s := strings.TrimSuffix(w.String(), "\n")
	return s[1 : len(s)-1]
}

// bodyOf returns the lines of a text, or of the member that holds them if it is JSON.
func bodyOf(t Text) body {
	if t.Kind == ToolResult {
		if b, ok := memberOf(t.Text); ok {
			return b
		}
	}
	b := body{raw: t.Text}
	for at := 0; at <= len(t.Text); {
		end := len(t.Text)
		if i := strings.IndexByte(t.Text[at:], '\n'); i >= 0 {
			end = at + i
		}
		b.add(t.Text[at:end], span{at, end})
		at = end + 1
	}
	return b
}

func (b *body) add(line string, at span) {
	b.lines = append(b.lines, line)
	b.ranges = append(b.ranges, at)
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
		return quotedBody(text, span{start, start + len(v.Raw) - 2})
	}
	return body{}, false
}

// quotedBody returns the lines of the JSON string that stands at a range of text. Line ends are looked for before
// anything is decoded, so each line is known by its own bytes, and those that stay need not be written anew.
func quotedBody(text string, at span) (body, bool) {
	b := body{raw: text, quoted: true}
	start := at.start
	for i := at.start; i <= at.end; {
		size := 0 // of a line end at i
		switch {
		case i == at.end:
		case text[i] != '\\':
			i++
			continue
		case text[i+1] == 'n':
			size = len(`\n`)
		case text[i+1] == 'u' && strings.EqualFold(text[i+2:i+6], "000a"):
			size = len(`\u000a`)
		default:
			i += 2
			continue
		}
		line, ok := unquote(text[start:i])
		if !ok {
			return body{}, false
		}
		b.add(line, span{start, i})
		if i == at.end {
			break
		}
		i += size
		start = i
	}
	return b, true
}

// unquote decodes a part of a JSON string.
func unquote(raw string) (string, bool) {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw, true
	}
	var s string
	err := json.Unmarshal([]byte(`"`+raw+`"`), &s)
	return s, err == nil
}
