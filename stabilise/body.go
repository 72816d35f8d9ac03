package stabilise

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/base/strictjson"
	"github.com/ragpilot/ragpilot/internal/base/validjson"
	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
)

// API is the form of a body.
type API uint8

// The APIs.
const (
	Chat      API = iota + 1 // /v1/chat/completions
	Messages                 // /v1/messages
	Responses                // /v1/responses
)

// Sent is a request as it is to be sent.
type Sent struct {
	Body []byte // what came, if nothing was changed
	// Begins is a name for how the conversation begins, which stays the same while only moved texts change. Empty: it was not understood.
	Begins string
	// Done is what was done; only one of all requests is in [Stabiliser.Stats].
	Done Stats
}

// body is a request whose parts were found.
type body struct {
	api     API
	raw     []byte
	members []gjson.Result // values of the root, by place
	keys    []gjson.Result
	tools   gjson.Result
	top     int          // of members: the system text beside the messages; -1: there is none
	list    gjson.Result // of messages
	model   string
	user    string   // that the client names
	heads   []holder // system texts
	items   []gjson.Result
	first   int // of items, the first that is no system message at the beginning
	role    string
}

// holder is what system texts stand in: the member beside the messages, or a message.
type holder struct {
	item    int // -1: the member
	value   gjson.Result
	content gjson.Result
	parts   []gjson.Result // of the content; nil: it is a string
}

// Body returns a body as it is to be sent. One that is not understood, or that says something twice, comes back as it is. The body given is
// not changed.
func (s *Stabiliser) Body(api API, c Conversation, raw []byte) Sent {
	out := Sent{Body: raw}
	if !s.cfg.Any() {
		return out
	}
	b, ok := parse(api, raw)
	if !ok {
		return out
	}
	w := &writer{s: s, b: b, place: s.place(b), done: &out.Done}
	key, named := identity(&c, b.user)
	f := &finder{s: s, form: c.Form, slots: map[string]int{}}
	if s.cfg.moves() && b.anchor() >= 0 {
		w.heads(f)
	} else {
		for _, h := range b.heads {
			w.texts = append(w.texts, h.content.Raw)
		}
	}
	out.Done.Volatile, out.Done.Memories, out.Done.Kept = f.lines, f.memories, f.kept
	head := w.begins()
	out.Begins = fmt.Sprintf("%016x", head.Hi^head.Lo)
	t := s.table(c.Tenant)
	if s.cfg.moves() {
		w.behind(t, &turn{owner: c.Name, named: named, pieces: f.out}, key)
		w.fence()
	}
	if c.Name == "" { // it is the user's, and not the conversation's
		key = nextSum(key, head)
	}
	w.tools(t, key, c.Name)
	out.Body = w.bytes()
	s.count(&out.Done)
	return out
}

// identity is what names the person whose conversation it is.
func identity(c *Conversation, user string) (key sum, named bool) {
	switch {
	case c.Name != "":
		return xxh3.HashString128("name\x00" + c.Name), true
	case user != "":
		return xxh3.HashString128("user\x00" + user), true
	}
	return sum{}, false
}

// place decides how texts are sent that have left the system text.
func (s *Stabiliser) place(b *body) Place {
	if s.cfg.Place != PlaceAuto {
		return s.cfg.Place
	}
	if b.api != Messages || takesSystem(b.model) {
		return PlaceSystem
	}
	return PlaceUser
}

// takesSystem reports whether a model of Anthropic takes system messages among the others.
func takesSystem(model string) bool {
	for _, name := range []string{"opus-4-8", "opus-5", "fable-5", "mythos-5"} {
		if _, rest, ok := strings.Cut(model, name); ok {
			return rest == "" || rest[0] < '0' || rest[0] > '9'
		}
	}
	return false
}

// maxParts bounds the members of a body, its messages and its tools.
const maxParts = 1 << 14

// parse finds the parts of a body. ok is false if it is not understood.
func parse(api API, raw []byte) (b *body, ok bool) {
	if !validjson.Valid(raw) {
		return nil, false
	}
	root := gjson.ParseBytes(raw)
	if !root.IsObject() {
		return nil, false
	}
	b = &body{api: api, raw: raw, top: -1}
	names := map[string]bool{}
	ok = true
	root.ForEach(func(key, value gjson.Result) bool {
		ok = !names[key.Str] && len(names) < maxParts
		names[key.Str] = true
		b.member(key, value)
		return ok
	})
	if !ok || !b.list.IsArray() && (api != Responses || b.list.Type != gjson.String) {
		return nil, false
	}
	b.list.ForEach(func(_, m gjson.Result) bool {
		b.items = append(b.items, m)
		return b.list.IsArray() && len(b.items) <= maxParts
	})
	if len(b.items) > maxParts {
		return nil, false
	}
	if b.top >= 0 {
		b.head(-1, b.members[b.top], b.members[b.top])
	}
	for api != Messages && b.first < len(b.items) {
		m := b.items[b.first]
		role := m.Get("role").Str
		if !m.IsObject() || role != "system" && role != "developer" || twice(m) {
			break
		}
		if b.role != "developer" {
			b.role = role
		}
		b.head(b.first, m, m.Get("content"))
		b.first++
	}
	switch { // of all that lines may come from, the one with least trust
	case api == Messages:
		b.role = "system"
	case b.role == "" || b.top >= 0:
		b.role = map[API]string{Chat: "system", Responses: "developer"}[api]
	}
	return b, true
}

// member takes a member of the body.
func (b *body) member(key, value gjson.Result) {
	b.keys, b.members = append(b.keys, key), append(b.members, value)
	switch name := key.Str; {
	case name == "tools", name == "functions" && b.api == Chat && !b.tools.Exists():
		b.tools = value
	case name == "model":
		b.model = value.Str
	case name == "messages" && b.api != Responses, name == "input" && b.api == Responses:
		b.list = value
	case name == "system" && b.api == Messages, name == "instructions" && b.api == Responses:
		b.top = len(b.members) - 1
	case name == "safety_identifier" && b.api != Messages && value.Str != "":
		b.user = value.Str
	case name == "user" && b.api != Messages && b.user == "":
		b.user = value.Str
	case name == "metadata" && b.api == Messages:
		b.user = value.Get("user_id").Str
	}
}

// head takes what holds system texts.
func (b *body) head(item int, value, content gjson.Result) {
	h := holder{item: item, value: value, content: content}
	if content.IsArray() {
		content.ForEach(func(_, part gjson.Result) bool {
			h.parts = append(h.parts, part)
			return true
		})
	}
	b.heads = append(b.heads, h)
}

// twice reports whether an object has a name twice: which one the engine reads is not certain.
func twice(v gjson.Result) bool {
	names := map[string]bool{}
	found := false
	v.ForEach(func(key, _ gjson.Result) bool {
		found = names[key.Str]
		names[key.Str] = true
		return !found
	})
	return found
}

// assistants reports whether item i is the assistant's: a text behind it would stand behind the beginning of an answer.
func (b *body) assistants(i int) bool {
	m := b.items[i]
	if b.api != Responses {
		return m.Get("role").Str == "assistant"
	}
	switch kind := m.Get("type").Str; kind {
	case "", "message":
		return m.Get("role").Str == "assistant"
	default:
		return !strings.HasSuffix(kind, "_output")
	}
}

// anchor returns the item behind which new texts go, -1 if there is none.
func (b *body) anchor() int {
	if b.list.Type == gjson.String {
		return 0
	}
	for i := len(b.items) - 1; i >= b.first; i-- {
		if !b.assistants(i) {
			return i
		}
	}
	return -1
}

// result reports whether item i is a message with the result of a tool, of which several belong together.
func (b *body) result(i int) bool {
	if i < 0 || i >= len(b.items) {
		return false
	}
	switch b.api {
	case Chat:
		role := b.items[i].Get("role").Str
		return role == "tool" || role == "function"
	case Responses:
		return strings.HasSuffix(b.items[i].Get("type").Str, "_output")
	}
	return false
}

// text returns what a string says, if it can be written again without a loss.
func text(v gjson.Result) (string, bool) {
	return v.Str, v.Type == gjson.String && utf8.ValidString(v.Str) && !strings.Contains(v.Str, "\uFFFD")
}

// textOf returns the text member of a content part.
func textOf(part gjson.Result) (v gjson.Result, ok bool) {
	kind := ""
	part.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "type":
			kind = value.Str
		case "text":
			v = value
		}
		return true
	})
	return v, v.Type == gjson.String && (kind == "text" || kind == "input_text" || kind == "output_text") && !twice(part)
}

// marks are members that tell a provider what to cache. They are no part of the prompt.
var marks = []string{"cache_control", "prompt_cache_breakpoint"}

// sumOf stands for all that an engine reads of a message, however it is laid out: without marks, and a content that is one text is the same
// as a list with one text part.
func sumOf(m gjson.Result) sum {
	h := xxh3.New()
	m.ForEach(func(key, value gjson.Result) bool {
		switch {
		case slices.Contains(marks, key.Str):
		case key.Str != "content":
			_, _ = h.WriteString(key.Raw)
			hash(h, value)
		case value.Type == gjson.String:
			_, _ = h.WriteString("content[text" + value.Raw + "]")
		default:
			_, _ = h.WriteString("content[")
			value.ForEach(func(_, part gjson.Result) bool {
				if t, ok := textOf(part); ok {
					_, _ = h.WriteString("text" + t.Raw)
				} else {
					hash(h, part)
				}
				return true
			})
			_, _ = h.WriteString("]")
		}
		return true
	})
	return h.Sum128()
}

// hash writes JSON into a hash, without marks and white space.
func hash(h *xxh3.Hasher, v gjson.Result) {
	if !v.IsObject() && !v.IsArray() {
		_, _ = h.WriteString(v.Raw)
		return
	}
	_, _ = h.WriteString(v.Raw[:1])
	v.ForEach(func(key, value gjson.Result) bool {
		if !slices.Contains(marks, key.Str) {
			_, _ = h.WriteString(key.Raw + ":")
			hash(h, value)
			_, _ = h.WriteString(",")
		}
		return true
	})
	_, _ = h.WriteString("}")
}

// begins stands for the system texts as they are sent, and the messages up to the first of the user.
func (w *writer) begins() sum {
	h := xxh3.New()
	for _, t := range w.texts {
		_, _ = h.WriteString(t + "\x00")
	}
	if w.b.list.Type == gjson.String {
		_, _ = h.WriteString(w.b.list.Raw)
		return h.Sum128()
	}
	for _, m := range w.b.items[w.b.first:] {
		s := sumOf(m)
		if bare := repeat.WithoutIDs(m.Raw); bare != m.Raw {
			s = xxh3.HashString128(bare)
		}
		_, _ = fmt.Fprint(h, s.Hi, s.Lo)
		if m.Get("role").Str == "user" {
			break
		}
	}
	return h.Sum128()
}

func quote(text string) string { return strictjson.Quote(text) }
