package batch

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// FuzzTemplate checks that every text is a prompt or an error with a line, that a prompt has its cells and its text and nothing else, and
// that text in which braces are doubled stands in the prompt as it is.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		"", "Which?", "{{a}}", "x {{ b }}\n{{*}}\nAnswer:", "{{blocks}}\n{{\"a\"}}", `{"a": {"b": 1}} {{a}}`, "{{{a}}}", "{{{{a}}", "{{a", "}}", "{{}}",
		"{{*}} {{*}}", "{{a}}\r\n\r\n{{b}}", `{{"*"}}`, "{{\"a\nb\"}}",
	} {
		f.Add(s)
	}
	columns, cells := []string{"a", "b", "*", " c"}, []string{"\x01", "\x02", "\x03", "\x04"}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\x01\x02\x03\x04") || !utf8.ValidString(text) {
			return
		}
		for _, blocks := range []string{"", " c"} {
			cells[3] = ""
			if blocks == "" {
				cells[3] = "\x04"
			}
			l, err := (&Prompt{Text: text, Blocks: blocks}).layout(columns, false)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "prompt") {
					t.Fatalf("%q: %v", text, err)
				}
				continue
			}
			units, err := l.units(cells, nil)
			if err != nil {
				t.Fatal(err)
			}
			prompt := l.head + strings.Join(units, "") + l.tail
			if !strings.Contains(text, "{{") && strings.TrimSpace(text) != "" {
				want := strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n") + "\n\na: \x01\nb: \x02\n*: \x03\n"
				if blocks == "" {
					want += " c: \x04\n"
				}
				if prompt != want {
					t.Fatalf("%q: %q, want %q", text, prompt, want)
				}
			}
			for _, u := range units {
				if !strings.HasSuffix(u, "\n") {
					t.Fatalf("%q: the unit %q has no end", text, u)
				}
			}
			if again, err := l.units(cells, nil); err != nil || !slices.Equal(units, again) {
				t.Fatalf("%q: %q, then %q", text, units, again)
			}
		}
		literal := strings.ReplaceAll(text, "{{", "{{{{")
		prompt := Prompt{Text: literal + "\n{{a}}"}
		l, err := prompt.layout(columns, false)
		if err != nil {
			t.Fatalf("%q as %q: %v", text, literal, err)
		}
		if want := strings.ReplaceAll(text+"\n", "\r\n", "\n"); l.head != want {
			t.Fatalf("%q as %q: %q, want %q", text, literal, l.head, want)
		}
	})
}

// FuzzReadBlocks checks that a cell is blocks or an error, and that a list has a block for each of its items, with their texts.
func FuzzReadBlocks(f *testing.F) {
	for _, s := range []string{
		"", " ", "a text", `["a", "b"]`, `[{"text": "a", "id": 7}]`, `[{"content": "a"}, {"page_content": null, "text": "b"}]`, "[", "[1]", `[null]`, `[{}]`,
		`[{"id": "\u00e9\"", "text": "a"}]`, `[{"TEXT":"a"}]`, `["\ud800"]`, `[{"id":{},"text":""}]`, "\ufeff[]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		if !utf8.ValidString(cell) {
			return // a table has no such cells
		}
		blocks, err := readBlocks(cell)
		trimmed := strings.TrimSpace(cell)
		if err != nil {
			named := strings.HasPrefix(err.Error(), "block ") || strings.Contains(err.Error(), "no JSON list")
			if blocks != nil || !strings.HasPrefix(trimmed, "[") || !named {
				t.Fatalf("%q: %v, %v", cell, blocks, err)
			}
			return
		}
		if !strings.HasPrefix(trimmed, "[") {
			if len(blocks) != min(1, len(trimmed)) || len(blocks) == 1 && blocks[0].Text != cell {
				t.Fatalf("%q: %v", cell, blocks)
			}
			return
		}
		var items []any
		if err := json.Unmarshal([]byte(trimmed), &items); err != nil || len(items) != len(blocks) {
			t.Fatalf("%q: %d blocks of %d, %v", cell, len(blocks), len(items), err)
		}
		for i, item := range items {
			text, ok := item.(string)
			for _, name := range []string{"text", "content", "page_content"} {
				if o, isObject := item.(map[string]any); isObject && !ok {
					text, ok = o[name].(string)
				}
			}
			if !ok || blocks[i].Text != text {
				t.Fatalf("%q: block %d is %q, want %q", cell, i+1, blocks[i].Text, text)
			}
		}
	})
}

// FuzzBodyText checks that two bodies have equal texts only if they are equal but for white space and the order of members, and that a body
// that can be ordered can be sent, with its members byte for byte.
func FuzzBodyText(f *testing.F) {
	const one = `{"messages":[{"role":"user","content":"a"}],"model":"m"}`
	for _, other := range []string{
		`{"model":"m", "messages":[{"content":"a","role":"user"}]}`, `{"messages":[{"role":"user","name":"a"}]}`, `{}`, `[]`, `{"messages":[{}]}`,
		`{"messages":[{"role":"user","content":"a\u0000\u0000user\nb"}]}`, `{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"n":1,"tools":[],"max_tokens":1e99}`, `{"messages":[{"role":"a","role":"b"}]}`,
	} {
		f.Add(one, other)
		f.Add(other, other)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y, same := bodyOf(t, a), bodyOf(t, b), false
		if x == "" || y == "" {
			return
		}
		same = reflect.DeepEqual(canonical(a, true), canonical(b, true))
		if x == y && !same {
			t.Fatalf("%s and %s have the text %q", a, b, x)
		}
		if same && x != y {
			t.Fatalf("%s and %s have the texts %q and %q", a, b, x, y)
		}
	})
}

// bodyOf returns the text of a body; empty: it is none, or has members twice, which the table finds.
func bodyOf(t *testing.T, body string) string {
	if !json.Valid([]byte(body)) || !utf8.ValidString(body) || !gjson.Parse(body).IsObject() {
		return ""
	}
	members, twice := map[string]string{}, false
	gjson.Parse(body).ForEach(func(key, value gjson.Result) bool {
		_, again := members[key.Str]
		twice = twice || again
		members[key.Str] = value.Raw
		return true
	})
	text, err := bodyText(json.RawMessage(body))
	if twice || err != nil {
		return ""
	}
	r, err := bodyRequest(json.RawMessage(body))
	if err != nil || len(r.Messages) != len(gjson.Parse(members["messages"]).Array()) {
		t.Fatalf("%s: %v, %v", body, r.Messages, err)
	}
	for name, value := range members {
		if sent, ok := r.Extra[name]; name != "stream" && name != "stream_options" && (!ok || string(sent) != value) {
			t.Fatalf("%s: %s is sent as %s", body, name, sent)
		}
	}
	return text
}

// canonical is a value without white space, and at the outer levels of a body, its own and that of messages, without an order of members.
func canonical(raw string, outer bool) any {
	v := gjson.Parse(raw)
	if !outer {
		return string(compact(raw))
	}
	members := map[string]any{}
	v.ForEach(func(key, value gjson.Result) bool {
		if key.Str != "messages" {
			members[key.Str] = canonical(value.Raw, false)
			return true
		}
		var list []map[string]any
		for _, m := range value.Array() {
			message := map[string]any{}
			m.ForEach(func(key, value gjson.Result) bool {
				message[key.Str] = canonical(value.Raw, false)
				return true
			})
			list = append(list, message)
		}
		members[key.Str] = list
		return true
	})
	return members
}

func compact(raw string) []byte {
	var b strings.Builder
	inText := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			b.WriteString(raw[i : i+2])
			i++
			continue
		case c == '"':
			inText = !inText
		case !inText && strings.IndexByte(" \t\r\n", c) >= 0:
			continue
		}
		b.WriteByte(raw[i])
	}
	return []byte(b.String())
}
