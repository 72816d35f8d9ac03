package prefixdiff

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// responses reads OpenAI's responses.
func (r *reader) responses() {
	r.settings("model")
	r.settings(salts...)
	if effort := r.member("reasoning").Get("effort"); effort.Exists() {
		r.add("reasoning.effort", Setting, System, Front, effort.Str)
	}
	if text := r.member("text"); text.IsObject() {
		if v := text.Get("verbosity"); v.Exists() {
			r.add("text.verbosity", Setting, System, Front, v.Str)
		}
		if f := text.Get("format"); f.IsObject() {
			r.add("text.format", Schema, System, Front, f.Raw)
		}
	}
	for _, name := range [...]string{"previous_response_id", "conversation", "prompt"} {
		if v := r.member(name); v.Exists() && v.Type != gjson.Null {
			r.partial = true
		}
	}
	r.tools("tools", r.member("tools"))
	if v := r.member("instructions"); v.Type == gjson.String {
		r.add("instructions", Text, System, Front, v.Str)
	}
	input := r.member("input")
	if input.Type == gjson.String {
		r.add("input", Text, User, 0, input.Str)
		return
	}
	input.ForEach(func(_, item gjson.Result) bool {
		at := "input[" + strconv.Itoa(r.turn) + "]"
		switch {
		case item.Type == gjson.String:
			r.add(at, Text, User, r.turn, item.Str)
		case item.IsObject():
			r.item(at, item)
		}
		r.turn++
		return true
	})
}

// item adds one item of a responses request.
func (r *reader) item(at string, m gjson.Result) {
	switch m.Get("type").Str {
	case "", "message":
		r.message(at, m)
	case "function_call", "custom_tool_call":
		r.add(at+".call_id", Ident, Assistant, r.turn, m.Get("call_id").Str)
		r.add(at+".name", Name, Assistant, r.turn, m.Get("name").Str)
		if v := m.Get("input"); v.Exists() {
			r.arguments(at+".input", v)
			return
		}
		r.arguments(at+".arguments", m.Get("arguments"))
	case "function_call_output", "custom_tool_call_output":
		r.add(at+".call_id", Ident, Tool, r.turn, m.Get("call_id").Str)
		r.content(at+".output", m.Get("output"), Tool, r.turn)
	case "reasoning":
		r.content(at+".summary", m.Get("summary"), Assistant, r.turn)
		if v := m.Get("encrypted_content"); v.Str != "" {
			r.add(at+".encrypted_content", Opaque, Assistant, r.turn, v.Str)
		}
	case "item_reference":
		r.partial = true
	default:
		r.opaque(at, m, Assistant, r.turn)
	}
}

// gemini reads Gemini's generateContent.
func (r *reader) gemini() {
	r.settings("model")
	if v, _ := r.first("cachedContent", "cached_content"); v.Exists() {
		r.partial = true
	}
	if c, name := r.first("generationConfig", "generation_config"); c.IsObject() {
		for _, schema := range [...]string{"responseSchema", "responseJsonSchema", "response_schema"} {
			if s := c.Get(schema); s.IsObject() {
				r.add(name+"."+schema, Schema, System, Front, s.Raw)
			}
		}
	}
	r.tools("tools", r.member("tools"))
	if s, name := r.first("systemInstruction", "system_instruction"); s.Exists() {
		parts := s.Get("parts")
		if !parts.Exists() {
			r.content(name, s, System, Front)
		} else {
			r.content(name+".parts", parts, System, Front)
		}
	}
	contents := r.member("contents")
	if !contents.IsArray() {
		r.content("contents", contents, User, 0)
		return
	}
	r.messages("contents", contents)
}

// geminiPart adds a part that is a call of a function or its result.
func (r *reader) geminiPart(at string, p gjson.Result, role Role, turn int) bool {
	known := false
	for _, name := range [...]string{"functionCall", "function_call"} {
		if c := p.Get(name); c.IsObject() {
			known = true
			if id := c.Get("id"); id.Str != "" {
				r.add(at+"."+name+".id", Ident, role, turn, id.Str)
			}
			r.add(at+"."+name+".name", Name, role, turn, c.Get("name").Str)
			r.add(at+"."+name+".args", Arguments, role, turn, c.Get("args").Raw)
		}
	}
	for _, name := range [...]string{"functionResponse", "function_response"} {
		if c := p.Get(name); c.IsObject() {
			known = true
			if id := c.Get("id"); id.Str != "" {
				r.add(at+"."+name+".id", Ident, Tool, turn, id.Str)
			}
			r.add(at+"."+name+".name", Name, Tool, turn, c.Get("name").Str)
			r.add(at+"."+name+".response", Arguments, Tool, turn, c.Get("response").Raw)
		}
	}
	return known
}
