package dashboard

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Prompt lays out the texts of a request's body for people: the system text, then messages, input or prompt, each under
// a line that names its role. Tool definitions and settings are left out. What is no JSON object is returned as it is.
func Prompt(body []byte) string {
	root := gjson.ParseBytes(body)
	if !gjson.ValidBytes(body) || !root.IsObject() {
		return string(body)
	}
	var p layout
	for _, name := range []string{"system", "instructions"} {
		p.part(name, root.Get(name))
	}
	for _, name := range []string{"messages", "input", "prompt"} {
		v := root.Get(name)
		if !v.IsArray() {
			p.part(name, v)
			continue
		}
		v.ForEach(func(_, message gjson.Result) bool {
			p.message(name, message)
			return true
		})
	}
	return strings.TrimSuffix(p.String(), "\n")
}

type layout struct{ strings.Builder }

// message writes an element of a list: a message, another item of a conversation, or a bare prompt.
func (p *layout) message(list string, m gjson.Result) {
	role := m.Get("role").Str
	switch {
	case !m.IsObject():
		p.part(list, m)
	case role == "": // an item of /v1/responses: a call or its output
		p.part(m.Get("type").String(), m)
	default:
		p.part(role, m.Get("content"))
		p.part(role+", tool calls", m.Get("tool_calls"))
	}
}

// part writes a value under a heading, if there is one.
func (p *layout) part(heading string, v gjson.Result) {
	if !v.Exists() || v.Type == gjson.Null {
		return
	}
	if p.Len() > 0 {
		p.WriteString("\n")
	}
	p.WriteString("── " + heading + " ──\n")
	p.value(v, 0)
}

// maxDepth is how far lists are followed; a tool result in a message is at 2.
const maxDepth = 8

// value writes the texts of a value; what has none as the JSON it is.
func (p *layout) value(v gjson.Result, depth int) {
	switch {
	case depth > maxDepth:
		p.WriteString(v.Raw + "\n")
	case v.Type == gjson.String:
		p.WriteString(strings.TrimSuffix(v.Str, "\n") + "\n")
	case v.IsArray():
		v.ForEach(func(_, e gjson.Result) bool {
			p.value(e, depth+1)
			return true
		})
	default:
		for _, name := range []string{"text", "content", "output"} { // of a part, a tool result, a call's output
			if text := v.Get(name); text.Type == gjson.String || text.IsArray() {
				p.value(text, depth+1)
				return
			}
		}
		p.WriteString(v.Raw + "\n")
	}
}
