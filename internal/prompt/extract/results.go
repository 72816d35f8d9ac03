package extract

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/base/strictjson"
)

// maxDepth is how deep results may be nested. Each level indents every line below it, so this also bounds by how much
// the recorded layout can be longer than the text.
const maxDepth = 32

// idMembers name a result, the first of them that it has.
var idMembers = []string{"url", "path", "file", "filename", "uri", "href"}

// findResults looks for an object whose one member "results" is a list of two or more.
func findResults(text string) (Found, bool) {
	body := span{0, len(text)}.trimmed(text)
	raw := body.of(text)
	if !strings.HasPrefix(raw, "{") {
		return Found{}, false
	}
	depth, indent := measure(raw)
	if depth > maxDepth || !json.Valid([]byte(raw)) {
		return Found{}, false
	}
	var list gjson.Result
	lists := 0
	gjson.Parse(raw).ForEach(func(key, value gjson.Result) bool {
		if key.Str == "results" {
			list = value
			lists++
		}
		return true
	})
	if lists != 1 || !list.IsArray() {
		return Found{}, false
	}
	var docs []Doc
	var items []span
	list.ForEach(func(_, value gjson.Result) bool {
		docs = append(docs, Doc{Key: identity(value), Text: value.Raw})
		start := body.start + value.Index
		items = append(items, span{start, start + len(value.Raw)})
		return true
	})
	if len(docs) < 2 {
		return Found{}, false
	}
	head, tail := text[body.start:items[0].start], text[items[len(items)-1].end:body.end]
	// Indented by two, as the recorded implementation does. Numbers and strings stay as they are written.
	render := func(docs []string) string {
		raw := head + strings.Join(docs, ",") + tail
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(raw), "", "  "); err != nil {
			return raw // not reached: it was valid JSON
		}
		return b.String()
	}
	return Found{
		Mode: JSONResults, Docs: docs,
		text: text, items: items, form: layout{render: render, quote: strictjson.Quote, parted: true}, plain: indent <= 4*len(raw)+1024,
	}, true
}

// identity returns what names a result.
func identity(v gjson.Result) string {
	if !v.IsObject() {
		return oneLine(v.Raw)
	}
	names := map[string]string{}
	v.ForEach(func(key, value gjson.Result) bool {
		names[key.Str] = "" // of two members with one name the last one counts
		if value.Type == gjson.String {
			names[key.Str] = trim(value.Str)
		}
		return true
	})
	for _, member := range idMembers {
		if name := names[member]; name != "" {
			return name
		}
	}
	return oneLine(v.Raw)
}

// spaced puts a space behind what parts members and their values.
var spaced = strings.NewReplacer(",", ", ", ":", ": ")

// oneLine returns JSON with one space after each comma and colon and no other white space.
func oneLine(raw string) string {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(raw)); err != nil {
		return raw // not reached: it was valid JSON
	}
	var b strings.Builder
	outsideStrings(compact.String(), func(part string, quoted bool) {
		if !quoted {
			part = spaced.Replace(part)
		}
		b.WriteString(part)
	})
	return b.String()
}

// measure returns how deep JSON is nested and about how much white space the recorded layout puts into it, in bytes.
// Of what is not JSON it returns anything.
func measure(raw string) (depth, indent int) {
	level := 0
	outsideStrings(raw, func(part string, quoted bool) {
		if quoted {
			return
		}
		for i := range len(part) {
			switch part[i] {
			case '{', '[':
				level++
				depth = max(depth, level)
			case '}', ']':
				level--
			case ',':
			default:
				continue
			}
			indent += 1 + 2*max(level, 0)
		}
	})
	return depth, indent
}

// outsideStrings calls do for the parts of JSON that are strings and those that are not, in order.
func outsideStrings(raw string, do func(part string, quoted bool)) {
	for raw != "" {
		i := strings.IndexByte(raw, '"')
		if i < 0 {
			do(raw, false)
			return
		}
		do(raw[:i], false)
		end := i + 1
		for end < len(raw) && raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(raw))
		do(raw[i:end], true)
		raw = raw[end:]
	}
}
