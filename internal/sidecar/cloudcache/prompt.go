package cloudcache

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// prompt is a request body as a cache sees it: blocks in the order tools, system, messages.
type prompt struct {
	model  string
	seed   []string // what every prefix begins with
	blocks []block
	marked bool // the client has set breakpoints
	auto   bool // one of them at the end, wherever that is
	goesOn bool // a conversation or a tool loop is under way, so that a longer prompt will follow
	long   bool // the entry is to stay long, as the client says
	root   object
}

// block is the smallest part that a prefix can end with.
type block struct {
	span
	message int    // index of its message; [inTools], [inSystem]
	role    string // of its message
	bare    bool   // a string that stands for a text block
	fits    bool   // may carry a breakpoint
	long    bool   // a tool result that is worth one
	marked  bool   // carries one
	hour    bool   // and that asks for an hour
	control span   // the value of cache_control; empty: there is none
	cut     span   // the member cache_control, with the comma that goes with it
	end     int    // behind its last member
}

const (
	inTools  = -2
	inSystem = -1
)

// longResult is the length in characters from which the end of a tool result is worth a breakpoint of its own.
const longResult = 1024

// deepest is how many levels of blocks within blocks are searched for the client's breakpoints. Providers allow two.
const deepest = 4

// maxBlocks bounds the memory for one body: a block of 3 bytes takes 200. Providers allow 100,000 messages.
const maxBlocks = 1 << 17

// span is a range of bytes.
type span struct{ from, to int }

// object is a JSON object whose members of certain names were found.
type object struct {
	names  []string
	values []gjson.Result
	ok     bool // an object, and none of the names occurs twice: it would not be certain which one counts
	empty  bool
	end    int  // behind its last member
	cut    span // the member cache_control
}

func open(v gjson.Result, names ...string) object {
	o := object{names: names, values: make([]gjson.Result, len(names)), ok: v.IsObject(), empty: true, end: v.Index + 1}
	if !o.ok {
		return o
	}
	first := false // cache_control came first: the comma behind it goes with it
	v.ForEach(func(key, value gjson.Result) bool {
		if first {
			o.cut.to, first = key.Index, false
		}
		end := value.Index + len(value.Raw)
		if i := slices.Index(names, key.Str); i >= 0 {
			o.ok = o.ok && !o.values[i].Exists()
			o.values[i] = value
			if key.Str == "cache_control" {
				o.cut = span{o.end, end}
				if o.empty {
					o.cut.from, first = key.Index, true
				}
			}
		}
		o.end, o.empty = end, false
		return true
	})
	return o
}

// get returns a member's value, which does not exist if the object lacks it.
func (o *object) get(name string) gjson.Result { return o.values[slices.Index(o.names, name)] }

// readMessages reads a body of Anthropic's form. ok is false if it is not one.
func readMessages(body []byte) (p prompt, ok bool) {
	p.root = open(gjson.ParseBytes(body), "model", "tools", "system", "messages", "cache_control")
	list, tools, system := p.root.get("messages"), p.root.get("tools"), p.root.get("system")
	if !p.root.ok || !list.IsArray() || !none(tools) && !tools.IsArray() {
		return p, false
	}
	p.model = p.root.get("model").Str
	p.seed = []string{p.model}
	p.auto = !none(p.root.get("cache_control"))
	p.marked = p.auto
	ok = true
	tools.ForEach(func(_, v gjson.Result) bool {
		p.goesOn = true
		ok = p.block(v, block{message: inTools})
		return ok
	})
	if ok && !none(system) {
		ok = p.content(system, block{message: inSystem})
	}
	n := 0
	list.ForEach(func(_, v gjson.Result) bool {
		m := open(v, "role", "content", "cache_control")
		like := block{message: n, role: m.get("role").Str}
		p.goesOn = p.goesOn || like.role == "assistant"
		p.marked = p.marked || !none(m.get("cache_control"))
		ok = ok && m.ok && p.content(m.get("content"), like)
		n++
		return ok
	})
	return p, ok
}

// content adds the blocks of a system text or of a message.
func (p *prompt) content(v gjson.Result, like block) bool {
	if v.Type == gjson.String {
		like.span = span{v.Index, v.Index + len(v.Raw)}
		like.bare, like.fits = true, strings.TrimSpace(v.Str) != ""
		p.blocks = append(p.blocks, like)
		return len(p.blocks) <= maxBlocks
	}
	if !v.IsArray() {
		return false
	}
	ok := true
	v.ForEach(func(_, v gjson.Result) bool {
		ok = p.block(v, like)
		return ok
	})
	return ok
}

func (p *prompt) block(v gjson.Result, b block) bool {
	o := open(v, "type", "text", "content", "source", "cache_control")
	if !o.ok {
		return false
	}
	b.span = span{v.Index, v.Index + len(v.Raw)}
	b.end, b.cut = o.end, o.cut
	content := o.get("content")
	switch o.get("type").Str { // thinking, for one, may carry no breakpoint, and empty texts neither
	case "text":
		b.fits = strings.TrimSpace(o.get("text").Str) != ""
	case "image", "document", "search_result":
		b.fits = b.role == "user"
	case "tool_result":
		if b.role == "user" {
			n := textLength(content)
			b.fits, b.long = n > 0, n >= longResult
			p.goesOn = true
		}
	}
	b.fits = b.fits && b.message != inTools
	if control := o.get("cache_control"); control.Exists() {
		b.control = span{control.Index, control.Index + len(control.Raw)}
		b.marked, b.hour = !none(control), control.Get("ttl").Str == "1h"
	}
	p.marked = p.marked || b.marked || marksIn(content, 1) || marksIn(o.get("source").Get("content"), 1)
	p.blocks = append(p.blocks, b)
	return len(p.blocks) <= maxBlocks
}

// textLength is how many characters the texts of a tool result have; 0 if they are blank.
func textLength(content gjson.Result) (n int) {
	blank := true
	add := func(s string) {
		n += utf8.RuneCountInString(s)
		blank = blank && strings.TrimSpace(s) == ""
	}
	if content.Type == gjson.String {
		add(content.Str)
	} else if content.IsArray() {
		content.ForEach(func(_, v gjson.Result) bool {
			switch part := open(v, "type", "text"); part.get("type").Str {
			case "text":
				add(part.get("text").Str)
			case "image", "document", "search_result":
				n++
				blank = false
			}
			return true
		})
	}
	if blank {
		return 0
	}
	return n
}

// marksIn reports whether there are breakpoints in the blocks within a block.
func marksIn(v gjson.Result, depth int) (found bool) {
	if depth > deepest || !v.IsArray() {
		return false
	}
	v.ForEach(func(_, v gjson.Result) bool {
		o := open(v, "content", "source", "cache_control")
		found = !none(o.get("cache_control")) || marksIn(o.get("content"), depth+1) || marksIn(o.get("source").Get("content"), depth+1)
		return !found
	})
	return found
}

// readOpenAI reads a body of /v1/chat/completions or /v1/responses. ok is false if it is neither.
func readOpenAI(body []byte) (p prompt, ok bool) {
	p.root = open(gjson.ParseBytes(body), "model", "tools", "messages", "input", "instructions", "previous_response_id",
		"prompt_cache_retention")
	list, input := p.root.get("messages"), p.root.get("input")
	if !p.root.ok || none(list) == none(input) {
		return p, false
	}
	p.model = p.root.get("model").Str
	p.seed = []string{p.model, p.root.get("tools").Raw, p.root.get("previous_response_id").Raw}
	p.long = p.root.get("prompt_cache_retention").Str == "24h"
	add := func(v gjson.Result, message int) {
		p.blocks = append(p.blocks, block{span: span{v.Index, v.Index + len(v.Raw)}, message: message})
	}
	if v := p.root.get("instructions"); !none(v) {
		add(v, inSystem)
	}
	if none(list) {
		list = input
	}
	switch {
	case list.Type == gjson.String && !none(input):
		add(list, 0)
		return p, true
	case !list.IsArray():
		return p, false
	}
	n := 0
	list.ForEach(func(_, v gjson.Result) bool {
		add(v, n)
		n++
		return len(p.blocks) <= maxBlocks
	})
	return p, len(p.blocks) <= maxBlocks
}

// none reports whether a member is missing or null.
func none(v gjson.Result) bool { return v.Type == gjson.Null }
