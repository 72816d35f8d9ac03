package prefixdiff

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// messages adds the messages of a list, whose place is path.
func (r *reader) messages(path string, list gjson.Result) {
	list.ForEach(func(_, m gjson.Result) bool {
		at := path + "[" + strconv.Itoa(r.turn) + "]"
		switch {
		case m.Type == gjson.String: // a list of texts
			r.add(at, Text, User, r.turn, m.Str)
		case m.IsObject():
			r.message(at, m)
		}
		r.turn++
		return true
	})
}

// message adds one chat message.
func (r *reader) message(at string, m gjson.Result) {
	role := roleOf(m.Get("role").Str)
	var calls gjson.Result
	before := len(r.parts)
	m.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "content", "parts", "text", "reasoning_content", "reasoning":
			r.content(at+"."+key.Str, value, role, r.turn)
		case "tool_calls":
			calls = value
		case "name":
			r.add(at+".name", Name, role, r.turn, value.Str)
		case "tool_call_id":
			r.add(at+".tool_call_id", Ident, role, r.turn, value.Str)
		}
		return true
	})
	i := 0
	calls.ForEach(func(_, c gjson.Result) bool {
		r.call(at+".tool_calls["+strconv.Itoa(i)+"]", c)
		i++
		return true
	})
	if call := m.Get("function_call"); call.IsObject() {
		r.call(at+".function_call", call)
	}
	if len(r.parts) == before {
		r.add(at, Opaque, role, r.turn, "")
	}
}

// call adds a call of a tool in a message of OpenAI's chat.
func (r *reader) call(at string, c gjson.Result) {
	if id := c.Get("id"); id.Str != "" {
		r.add(at+".id", Ident, Assistant, r.turn, id.Str)
	}
	if f := c.Get("function"); f.IsObject() {
		c = f
		at += ".function"
	}
	r.add(at+".name", Name, Assistant, r.turn, c.Get("name").Str)
	r.arguments(at+".arguments", c.Get("arguments"))
}

// arguments adds those of a call: an object, or a string that is one.
func (r *reader) arguments(at string, v gjson.Result) {
	if v.Type == gjson.String { // its white space is part of the prompt
		r.parts = append(r.parts, Part{Path: r.prefix + at, Kind: Arguments, Role: Assistant, Turn: r.turn, Text: v.Str})
		return
	}
	r.add(at, Arguments, Assistant, r.turn, v.Raw)
}

func roleOf(s string) Role {
	switch s {
	case "system", "developer":
		return System
	case "assistant", "model", "ai":
		return Assistant
	case "tool", "function", "toolResult":
		return Tool
	}
	return User
}

// content adds a text, or a list of parts. A list of one text is the same prompt as the text.
func (r *reader) content(at string, v gjson.Result, role Role, turn int) {
	if r.deep++; r.deep > maxNested {
		r.add(at, Opaque, role, turn, v.Raw)
		r.deep--
		return
	}
	defer func() { r.deep-- }()
	switch {
	case v.Type == gjson.String:
		if v.Str != "" {
			r.add(at, Text, role, turn, v.Str)
		}
	case v.IsArray():
		i := 0
		v.ForEach(func(_, part gjson.Result) bool {
			r.part(at+"["+strconv.Itoa(i)+"]", part, role, turn)
			i++
			return true
		})
	case v.IsObject():
		r.part(at, v, role, turn)
	}
}

// part adds one part of a message's content.
func (r *reader) part(at string, p gjson.Result, role Role, turn int) {
	if p.Type == gjson.String {
		r.add(at, Text, role, turn, p.Str)
		return
	}
	kind := p.Get("type").Str
	switch kind {
	case "", "text", "input_text", "output_text", "refusal":
		if t := p.Get("text"); t.Type == gjson.String {
			r.add(at+".text", Text, role, turn, t.Str)
			return
		}
		if r.geminiPart(at, p, role, turn) {
			return
		}
	case "thinking":
		r.add(at+".thinking", Text, role, turn, p.Get("thinking").Str)
		return
	case "redacted_thinking":
		r.add(at+".data", Opaque, role, turn, p.Get("data").Str)
		return
	case "tool_use", "server_tool_use":
		r.use(at, p, turn)
		return
	case "tool_result":
		r.add(at+".tool_use_id", Ident, Tool, turn, p.Get("tool_use_id").Str)
		r.content(at+".content", p.Get("content"), Tool, turn)
		return
	}
	if path, text, ok := media(p); ok {
		r.add(at+path, Media, role, turn, text)
		return
	}
	r.opaque(at, p, role, turn)
}

// use adds a call of a tool in a message of Anthropic's API.
func (r *reader) use(at string, p gjson.Result, turn int) {
	r.add(at+".id", Ident, Assistant, turn, p.Get("id").Str)
	r.add(at+".name", Name, Assistant, turn, p.Get("name").Str)
	r.add(at+".input", Arguments, Assistant, turn, p.Get("input").Raw)
}

// opaque adds what is not known, without the marks of a cache, which are no part of the prompt.
func (r *reader) opaque(at string, p gjson.Result, role Role, turn int) {
	p.ForEach(func(key, value gjson.Result) bool {
		text := value.Raw
		if value.Type == gjson.String {
			text = value.Str
		}
		if !isMark(key.Str) {
			r.add(at+"."+key.Str, Opaque, role, turn, text)
		}
		return true
	})
}

// media returns where the data of a picture, sound or file stands in a part.
func media(p gjson.Result) (path, data string, ok bool) {
	for _, name := range [...]string{
		"image_url.url", "image_url", "source.data", "source.url", "source.file_id", "input_audio.data", "file.file_data", "file.file_id",
		"video_url.url", "audio_url.url", "file_data", "file_url", "file_id", "image", "inlineData.data", "inline_data.data", "fileData.fileUri",
		"file_data.file_uri", "binary.data",
	} {
		if v := p.Get(name); v.Type == gjson.String {
			return "." + name, v.Str, true
		}
	}
	return "", "", false
}
