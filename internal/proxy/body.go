package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"unique"

	"github.com/tidwall/gjson"
)

// dialect is the form of a body.
type dialect uint8

const (
	openAI    dialect = iota + 1 // /v1/chat/completions
	anthropic                    // /v1/messages
	responses                    // /v1/responses
)

// role is who speaks in an item.
type role uint8

const (
	other role = iota
	system
	user
	assistant
	tool
)

// body is a request body whose items were found. Offsets are in bytes of raw.
type body struct {
	raw   []byte
	root  gjson.Result
	model string
	ids   ids
	items []span
}

// span is where an item stands. A body has one for each of its messages, which may be as short as a few bytes: what else is
// known of an item is made of it one at a time.
type span struct {
	message  int // index in messages; -1: the system member
	from, to int // its bytes
}

// item is one message, or the system text of an Anthropic body. Its role and texts are there after load.
type item struct {
	span
	value gjson.Result
	role  role
	inner extent // a message's content, from the item's first byte
	texts []text
	calls []call
}

// item returns item i, not loaded.
func (b *body) item(i int) item {
	s := b.items[i]
	v := gjson.Parse(b.root.Raw[s.from-b.root.Index : s.to-b.root.Index])
	v.Index = s.from
	return item{span: s, value: v}
}

// role returns the role that item i says, whatever else it is.
func (b *body) role(i int) role {
	it := b.item(i)
	return parseRole(it.value.Get("role").Str)
}

// call is a tool call that an item makes.
type call struct{ id, tool string }

// loneSurrogate reports whether a string has an escape that stands for no character: it would not survive. It decodes to the
// character that a text may as well have itself, or as an escape of its own.
func loneSurrogate(s gjson.Result) bool {
	decoded := strings.Count(s.Str, "\uFFFD")
	if decoded == 0 {
		return false
	}
	own := strings.Count(s.Raw, "\uFFFD")
	for rest := s.Raw; ; {
		i := strings.IndexByte(rest, '\\')
		if i < 0 || i+1 >= len(rest) {
			return decoded > own
		}
		if rest[i+1] == 'u' && len(rest) >= i+6 && strings.EqualFold(rest[i+2:i+6], "fffd") {
			own++
		}
		rest = rest[i+2:]
	}
}

// newCall copies what it is told: a part of a body would keep all of it in memory for as long as the call is known.
func newCall(id, tool gjson.Result) call {
	return call{id: strings.Clone(id.Str), tool: unique.Make(tool.Str).Value()}
}

// text is one string that documents may stand in.
type text struct {
	from, to int // its JSON string, quotes included, from the item's first byte
	value    string
	role     role
	toolID   string
	tool     string // name, if known; of an output whose call is not in the body the call's ID
	list     bool   // one of several content parts
}

// valid reports whether raw is JSON. gjson is three times as fast as encoding/json, but knows no limit of nesting: bodies
// that could be deep are left to the latter, which takes 10,000 levels.
func valid(raw []byte) bool {
	if bytes.Count(raw, []byte{'['})+bytes.Count(raw, []byte{'{'}) > 10_000 {
		return json.Valid(raw)
	}
	return gjson.ValidBytes(raw)
}

// maxParts bounds the messages of a body, its members, and the texts and calls of a message: what is kept of each takes
// many times the memory of the three bytes that a client needs to send one.
const maxParts = 1 << 14

// readBody finds the items of a body. ok is false if it is not an object with a list of messages, has too many of them,
// or says something twice, so that nobody can tell which one the engine will read.
func readBody(raw []byte, d dialect) (b body, ok bool) {
	b = body{raw: raw, root: gjson.ParseBytes(raw)}
	if !b.root.IsObject() {
		return b, false
	}
	names := map[string]bool{}
	var list, top gjson.Result
	ok = true
	b.root.ForEach(func(key, value gjson.Result) bool {
		ok = ok && !names[key.Str] && len(names) < maxParts
		names[key.Str] = true
		b.ids.note(key.Str, value)
		switch {
		case key.Str == "model":
			ok = ok && len(value.Str) <= maxName
			b.model = unique.Make(value.Str).Value()
		case key.Str == "messages" && d != responses, key.Str == "input" && d == responses:
			list = value
		case key.Str == "system" && d == anthropic:
			top = value
		}
		return ok
	})
	if !ok || !list.IsArray() {
		return b, false
	}
	if top.Exists() {
		b.items = append(b.items, span{message: -1, from: top.Index, to: top.Index + len(top.Raw)})
	}
	n := 0
	list.ForEach(func(_, m gjson.Result) bool {
		if n == maxParts {
			ok = false
			return false
		}
		b.items = append(b.items, span{message: n, from: m.Index, to: m.Index + len(m.Raw)})
		n++
		return true
	})
	return b, ok
}

// load finds an item's role and texts. tools has the names of the tools called so far, by the calls' IDs, and is given
// those that the item calls.
func (it *item) load(d dialect, tools map[string]string) {
	switch {
	case it.message < 0:
		it.role = system
		it.content(it.value, text{role: system})
	case d == responses:
		it.output(tools)
	default:
		it.read(tools)
	}
	for _, c := range it.calls {
		tools[c.id] = c.tool
	}
}

// read finds the texts of a chat message.
func (it *item) read(tools map[string]string) {
	var content gjson.Result
	id, name := "", ""
	it.value.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "role":
			it.role = parseRole(value.Str)
		case "content":
			content = value
		case "tool_call_id", "toolCallId":
			id = value.Str
		case "name":
			name = unique.Make(value.Str).Value()
		case "tool_calls":
			value.ForEach(func(_, c gjson.Result) bool {
				it.calls = append(it.calls, newCall(c.Get("id"), c.Get("function.name")))
				return len(it.calls) < maxParts
			})
		}
		return true
	})
	it.inner = it.extentOf(content)
	it.content(content, text{role: it.role, toolID: id, tool: cmp.Or(tools[id], name)})
	if !content.IsArray() {
		return
	}
	content.ForEach(func(_, part gjson.Result) bool {
		switch part.Get("type").Str {
		case "tool_use":
			it.calls = append(it.calls, newCall(part.Get("id"), part.Get("name")))
		case "tool_result", "toolResult":
			id := part.Get("tool_use_id").Str
			it.content(part.Get("content"), text{role: tool, toolID: id, tool: tools[id]})
		}
		return len(it.calls) < maxParts && len(it.texts) < maxParts
	})
}

// output finds the text of a function's output in an item of the Responses API.
func (it *item) output(tools map[string]string) {
	m := it.value
	switch m.Get("type").Str {
	case "function_call":
		it.calls = append(it.calls, newCall(m.Get("call_id"), m.Get("name")))
	case "function_call_output":
		it.role = tool
		id := m.Get("call_id").Str
		m.ForEach(func(key, value gjson.Result) bool {
			if key.Str == "output" {
				it.content(value, text{role: tool, toolID: id, tool: cmp.Or(tools[id], unique.Make(id).Value())})
			}
			return true
		})
	}
}

// content adds the texts of a content member: a string, or a list of parts of which those of type text count.
func (it *item) content(c gjson.Result, like text) {
	add := func(s gjson.Result, list bool) {
		if s.Type != gjson.String || loneSurrogate(s) {
			return
		}
		t := like
		t.from, t.to, t.value, t.list = s.Index-it.from, s.Index-it.from+len(s.Raw), s.Str, list
		it.texts = append(it.texts, t)
	}
	if !c.IsArray() {
		add(c, false)
		return
	}
	c.ForEach(func(_, part gjson.Result) bool {
		kind := ""
		var s gjson.Result
		part.ForEach(func(key, value gjson.Result) bool {
			switch key.Str {
			case "type":
				kind = value.Str
			case "text":
				s = value
			}
			return true
		})
		if kind == "text" || kind == "output_text" || kind == "input_text" {
			add(s, true)
		}
		return len(it.texts) < maxParts
	})
}

func parseRole(s string) role {
	switch s {
	case "system", "developer":
		return system
	case "user":
		return user
	case "assistant":
		return assistant
	case "tool", "toolResult", "function":
		return tool
	}
	return other
}
