package proxy_test

import (
	"slices"
	"strings"
)

func (t *talking) entry(members ...member) entry {
	if t.in(6) {
		members = append(members, member{"x_unknown", pick(t.dice, []any{nil, "é", object{{"content", "no"}}, written("[1e5 ,\t2]")})})
	}
	return entry{style: styleOf(t.dice), value: members}
}

// body writes all that was said.
func (t *talking) body() string {
	var items []any
	groups := slices.Concat(t.groups...)
	for i, e := range groups {
		value := e.value
		if t.marks && i == len(groups)-1 {
			value = withMark(value)
		}
		items = append(items, written(e.style.write(value)))
	}
	members := object{{"model", t.model}}
	list := "messages"
	switch {
	case t.path == responsesPath:
		list = "input"
		if len(t.system) > 0 {
			members = append(members, member{"instructions", t.system[0]})
		}
	case t.path == messagesPath:
		members = append(members, member{"max_tokens", 100})
		if len(t.system) > 0 {
			members = append(members, member{"system", written(t.about.write(t.parts(t.system)))})
		}
	case len(t.system) > 0:
		items = append([]any{written(t.about.write(object{{"role", "system"}, {"content", t.parts(t.system)}}))}, items...)
	}
	members = append(members, member{list, items})
	members = append(members, t.extra...)
	switch t.odd {
	case 1:
		members = append(members, member{list, []any{}})
	case 2:
		return t.style.write(members) + "}"
	case 3:
		members[len(members)-len(t.extra)-1].value = "a string"
	case 4:
		return "[" + t.style.write(members) + "]"
	}
	return t.style.write(members)
}

// parts is one text as it is, and several as parts.
func (t *talking) parts(texts []string) any {
	if len(texts) == 1 {
		return texts[0]
	}
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = object{{"type", "text"}, {"text", text}}
	}
	if t.path == messagesPath {
		out[0] = append(out[0].(object), member{"cache_control", object{{"type", "ephemeral"}}})
	}
	return out
}

// withMark adds a cache mark to the last part of an item.
func withMark(item object) object {
	item = slices.Clone(item)
	for i, m := range item {
		list, ok := m.value.([]any)
		if m.name != "content" || !ok || len(list) == 0 {
			continue
		}
		if part, ok := list[len(list)-1].(object); ok {
			list = slices.Clone(list)
			list[len(list)-1] = append(slices.Clip(part), member{"cache_control", object{{"type", "ephemeral"}}})
			item[i].value = list
		}
	}
	return item
}

const (
	messagesPath  = "/v1/messages"
	responsesPath = "/v1/responses"
)

// user is a user's message.
func (t *talking) user() entry {
	text, kind := t.question(), "text"
	if t.path == responsesPath {
		kind = "input_text"
	}
	var content any = text
	if t.in(2) {
		list := []any{object{{"type", kind}, {"text", text}}}
		if t.in(3) {
			list = slices.Insert(list, t.n(2), t.image())
		}
		if t.in(5) {
			list = append(list, object{{"type", kind}, {"text", t.question()}}, t.document())
		}
		content = list
	}
	members := []member{{"role", "user"}, {"content", content}}
	if t.path == responsesPath && t.in(2) {
		members = append(members, member{"type", "message"})
	}
	return t.entry(members...)
}

func (t *talking) image() any {
	switch t.path {
	case messagesPath:
		return object{{"type", "image"}, {"source", object{{"type", "base64"}, {"media_type", "image/png"}, {"data", "iVBORw0KGgo="}}}}
	case responsesPath:
		return object{{"type", "input_image"}, {"image_url", "data:image/png;base64,iVBORw0KGgo="}}
	}
	return object{{"type", "image_url"}, {"image_url", object{{"url", "data:image/png;base64,iVBORw0KGgo="}}}}
}

// document is a part that others wrote.
func (t *talking) document() any {
	if t.path != messagesPath {
		return t.image()
	}
	if t.in(2) {
		return object{
			{"type", "search_result"}, {"source", "u"}, {"title", "t"}, {
				"content", []any{object{{"type", "text"}, {"text", pick(t.dice, t.docs)}}},
			},
		}
	}
	return object{{"type", "document"}, {"source", object{{"type", "text"}, {"media_type", "text/plain"}, {"data", pick(t.dice, hostile)}}}}
}

// says is an assistant's message.
func (t *talking) says(text string) entry {
	switch {
	case t.path == messagesPath && t.in(2):
		return t.entry(member{"role", "assistant"}, member{"content", []any{object{{"type", "text"}, {"text", text}}}})
	case t.path == responsesPath && t.in(2):
		return t.entry(
			member{"type", "message"}, member{"role", "assistant"}, member{
				"content", []any{object{{"type", "output_text"}, {"text", text}}},
			},
		)
	}
	return t.entry(member{"role", "assistant"}, member{"content", text})
}

// answered are calls of tools and their results.
func (t *talking) answered(ids, tools, results []string) []entry {
	switch t.path {
	case messagesPath:
		return t.messages(ids, tools, results)
	case responsesPath:
		return t.responses(ids, tools, results)
	}
	var calls []any
	for i, id := range ids {
		calls = append(calls, object{{"id", id}, {"type", "function"}, {"function", object{{"name", tools[i]}, {"arguments", "{}"}}}})
	}
	out := []entry{t.entry(member{"role", "assistant"}, member{"content", nil}, member{"tool_calls", calls})}
	for i, id := range ids {
		members := []member{{"role", "tool"}, {"tool_call_id", id}, {"content", t.output(results[i], "text")}}
		if t.in(9) { // as was usual before there were IDs
			members = []member{{"role", "function"}, {"name", tools[i]}, {"content", results[i]}}
		}
		out = append(out, t.entry(members...))
	}
	return out
}

// output is a tool's result as a string, or as parts.
func (t *talking) output(text, kind string) any {
	switch t.n(12) {
	case 0:
		return []any{object{{"type", kind}, {"text", text}}}
	case 1:
		half := len([]rune(text)) / 2
		return []any{
			object{
				{"type", kind}, {"text", string([]rune(text)[:half])},
			}, t.image(), object{{"type", kind}, {"text", string([]rune(text)[half:])}},
		}
	case 2:
		return []any{t.image(), object{{"type", kind}, {"text", text}, {"x", "y"}}}
	case 3:
		return written(strings.TrimSuffix(string(compact(text)), `"`) + ` \ud83d"`) // half a character
	}
	return text
}

func (t *talking) messages(ids, tools, results []string) []entry {
	calls := []any{object{{"type", "text"}, {"text", words(t.dice, 3)}}}
	var parts []any
	var each []entry
	for i, id := range ids {
		calls = append(calls, object{{"type", "tool_use"}, {"id", id}, {"name", tools[i]}, {"input", object{}}})
		part := object{{"type", "tool_result"}, {"tool_use_id", id}, {"content", t.output(results[i], "text")}}
		parts = append(parts, part)
		each = append(each, t.entry(member{"role", "user"}, member{"content", []any{part}}))
	}
	out := []entry{t.entry(member{"role", "assistant"}, member{"content", calls})}
	if t.in(3) {
		return append(out, each...)
	}
	if t.in(4) {
		parts = append(parts, object{{"type", "text"}, {"text", t.question()}})
	}
	return append(out, t.entry(member{"role", "user"}, member{"content", parts}))
}

func (t *talking) responses(ids, tools, results []string) []entry {
	var out []entry
	if t.in(3) {
		out = append(
			out, t.entry(
				member{"type", "reasoning"}, member{"summary", []any{}},
			), t.entry(member{"type", "item_reference"}, member{"id", "x"}),
		)
	}
	for i, id := range ids {
		if !t.in(8) { // else the server has it
			out = append(
				out, t.entry(member{"type", "function_call"}, member{"call_id", id}, member{"name", tools[i]}, member{"arguments", "{}"}),
			)
		}
	}
	for i, id := range ids {
		switch t.n(10) {
		case 0:
			out = append(out, t.entry(member{"type", "custom_tool_call_output"}, member{"call_id", id}, member{"output", results[i]}))
		case 1:
			out = append(
				out, t.entry(member{"type", "file_search_call"}, member{"id", id}, member{"results", []any{object{{"text", results[i]}}}}),
			)
		default:
			out = append(
				out, t.entry(
					member{"type", "function_call_output"}, member{"call_id", id}, member{"output", t.output(results[i], "input_text")},
				),
			)
		}
	}
	return out
}
