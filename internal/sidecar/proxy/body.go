package proxy

import (
	"strings"
	"unique"

	"github.com/tidwall/gjson"
	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/conversation"
)

// dialect is the form of a body.
type dialect uint8

const (
	openAI     dialect = iota + 1 // /v1/chat/completions
	anthropic                     // /v1/messages
	responses                     // /v1/responses
	completion                    // /v1/completions: a prompt without messages
)

// body is a request body whose items were found: a [conversation.Source]. Offsets are in bytes of raw.
type body struct {
	raw     []byte
	dialect dialect
	compat  bool
	root    gjson.Result
	model   string
	ids     ids
	items   []span
	blocks  struct{ there, says bool } // the member of that name: places in texts, which must stay as they are then
	sums    []conversation.Sum         // nil: not asked for yet
	scratch item                       // the last one that was loaded: there may be many, and most say little
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
	role  conversation.Role
	inner extent // a message's content, from the item's first byte
	texts []text
	calls []conversation.Call
}

// item returns item i, not loaded.
func (b *body) item(i int) item {
	s := b.items[i]
	v := gjson.Parse(b.root.Raw[s.from-b.root.Index : s.to-b.root.Index])
	v.Index = s.from
	return item{span: s, value: v}
}

// Len returns the number of items.
func (b *body) Len() int { return len(b.items) }

// Sum stands for the bytes of item i.
func (b *body) Sum(i int) conversation.Sum {
	if b.sums == nil {
		b.sums = make([]conversation.Sum, len(b.items))
		for j, it := range b.items {
			b.sums[j] = xxh3.Hash128(b.raw[it.from:it.to])
		}
	}
	return b.sums[i]
}

// Role returns the role of item i.
func (b *body) Role(i int) conversation.Role {
	switch it := b.item(i); {
	case it.message < 0:
		return conversation.System
	case b.dialect == responses && it.value.Get("type").Str == "function_call_output":
		return conversation.Tool
	default:
		return parseRole(it.value.Get("role").Str)
	}
}

// Load writes item i into m.
func (b *body) Load(i int, m *conversation.Message) {
	it := b.loaded(i)
	m.Role = it.role
	m.Calls = append(m.Calls, it.calls...)
	for j := range it.texts {
		tx := it.texts[j].Text
		tx.At = it.texts[j].pack()
		m.Texts = append(m.Texts, tx)
	}
}

// pack writes where a text stands in its item as a number: items have less than 2 GiB.
func (t *text) pack() uint64 { return uint64(t.from)<<32 | uint64(t.to) }

func unpack(at uint64) extent { return extent{int(at >> 32), int(at & (1<<32 - 1))} }

// loaded returns item i, loaded, until the next call.
func (b *body) loaded(i int) *item {
	it := &b.scratch
	texts, calls := it.texts[:0], it.calls[:0]
	*it = b.item(i)
	it.texts, it.calls = texts, calls
	it.load(b.dialect, b.compat)
	return it
}

// edits are those of the body's bytes.
func (b *body) edits(edits []conversation.Edit) []edit {
	if len(edits) == 0 {
		return nil
	}
	out := make([]edit, 0, len(edits)+2)
	for _, e := range edits {
		at, from := unpack(e.At), b.items[e.Message].from
		out = append(out, edit{from: from + at.from, to: from + at.to, with: e.With})
	}
	return out
}

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

func newCall(id, tool gjson.Result) conversation.Call {
	return conversation.Call{ID: id.Str, Tool: tool.Str}
}

// text is one string that documents may stand in, or JSON that only its notes are fenced in.
type text struct {
	conversation.Text
	from, to int  // its JSON, quotes included, from the item's first byte
	list     bool // one of several content parts
}

// maxParts bounds the messages of a body, its members, and the texts and calls of a message: what is kept of each takes
// many times the memory of the three bytes that a client needs to send one.
const maxParts = 1 << 14

// readBody finds the items of a body. ok is false if it is not an object with a list of messages, has too many of them,
// or says something twice, so that it is not certain which one the engine will read.
func readBody(raw []byte, d dialect, compat bool) (b body, ok bool) {
	b = body{raw: raw, dialect: d, compat: compat, root: gjson.ParseBytes(raw)}
	if !b.root.IsObject() || int64(len(raw)) >= 1<<31 { // see place.pack
		return b, false
	}
	names := map[string]bool{}
	var list, top gjson.Result
	ok = true
	b.root.ForEach(func(key, value gjson.Result) bool {
		ok = ok && !names[key.Str] && len(names) < maxParts
		names[key.Str] = true
		b.ids.note(key.Str, value)
		if key.Str == blocksMember && d == openAI {
			b.blocks.there, b.blocks.says = true, b.blocks.says || value.Type != gjson.Null
		}
		switch {
		case key.Str == "model":
			ok = ok && len(value.Str) <= maxName
			b.model = unique.Make(value.Str).Value()
		case key.Str == "messages" && d != responses, key.Str == "input" && d == responses:
			list = value
		case key.Str == "system" && d == anthropic, key.Str == "instructions" && d == responses && !compat:
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

// load finds an item's role, texts and calls.
func (it *item) load(d dialect, compat bool) {
	switch {
	case it.message < 0:
		it.role = conversation.System
		it.content(it.value, conversation.Text{Role: conversation.System})
	case d == responses:
		it.output(compat)
	default:
		it.read()
	}
	for i := range it.texts {
		tx := &it.texts[i]
		tx.Rows = !compat || d != anthropic && (!tx.list || tx.Role == conversation.Assistant)
	}
	it.opaque(d)
}

// read finds the texts of a chat message.
func (it *item) read() {
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
			name = value.Str
		case "tool_calls":
			value.ForEach(func(_, c gjson.Result) bool {
				it.calls = append(it.calls, newCall(c.Get("id"), c.Get("function.name")))
				return len(it.calls) < maxParts
			})
		}
		return true
	})
	it.inner = it.extentOf(content)
	it.content(content, conversation.Text{Role: it.role, Call: id, Tool: name})
	if !content.IsArray() {
		return
	}
	content.ForEach(func(_, part gjson.Result) bool {
		switch part.Get("type").Str {
		case "tool_use":
			it.calls = append(it.calls, newCall(part.Get("id"), part.Get("name")))
		case "tool_result", "toolResult":
			it.content(part.Get("content"), conversation.Text{Role: conversation.Tool, Call: part.Get("tool_use_id").Str})
		}
		return len(it.calls) < maxParts && len(it.texts) < maxParts
	})
}

// output finds the texts of an item of the Responses API: those of a message, which were not looked at where it was recorded, and
// a function's output.
func (it *item) output(compat bool) {
	m := it.value
	it.role = parseRole(m.Get("role").Str)
	switch m.Get("type").Str {
	case "function_call":
		it.calls = append(it.calls, newCall(m.Get("call_id"), m.Get("name")))
	case "function_call_output":
		it.role = conversation.Tool
		id := m.Get("call_id").Str
		m.ForEach(func(key, value gjson.Result) bool {
			if key.Str == "output" {
				it.content(value, conversation.Text{Role: conversation.Tool, Call: id, Tool: id})
			}
			return true
		})
	case "", "message":
		if !compat && it.role != conversation.Other && it.role != conversation.Tool {
			it.content(m.Get("content"), conversation.Text{Role: it.role})
		}
	}
}

// content adds the texts of a content member: a string, or a list of parts, where those of type text count.
func (it *item) content(c gjson.Result, like conversation.Text) {
	add := func(s gjson.Result, list bool) {
		if s.Type != gjson.String || loneSurrogate(s) {
			return
		}
		t := text{Text: like, from: s.Index - it.from, to: s.Index - it.from + len(s.Raw), list: list}
		t.Value = s.Str
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

func parseRole(s string) conversation.Role {
	switch s {
	case "system", "developer":
		return conversation.System
	case "user":
		return conversation.User
	case "assistant":
		return conversation.Assistant
	case "tool", "toolResult", "function":
		return conversation.Tool
	}
	return conversation.Other
}
