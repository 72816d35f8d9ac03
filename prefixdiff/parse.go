package prefixdiff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/base/validjson"
)

// ErrUnknown is returned for JSON that is no request to a language model.
var ErrUnknown = errors.New("prefixdiff: no messages, input, contents, prompt or text")

// ErrInvalid is returned for what is no JSON, and for a request of too many parts.
var ErrInvalid = errors.New("prefixdiff: invalid JSON")

// Parse reads the body of a request: OpenAI's chat completions, completions and responses, Anthropic's messages, Gemini's
// generateContent, SGLang's generate, or a list of messages, also those of langchaingo. The line of a batch file or of a log is read,
// too, if the body is its member body, params, request or input. Parts share memory with the body, which must not change.
// Members that are not part of the prompt, such as temperature or metadata, are left out.
func Parse(body []byte) (Prompt, error) {
	if !validjson.Valid(body) {
		return Prompt{}, ErrInvalid
	}
	root := gjson.ParseBytes(body)
	if root.IsArray() {
		r := reader{}
		r.messages("", root)
		if len(r.parts) == 0 {
			return Prompt{}, ErrUnknown
		}
		return r.prompt()
	}
	return parseObject(root, "", 0)
}

// maxWrapped is how deep a body may be wrapped in others.
const maxWrapped = 3

func parseObject(root gjson.Result, prefix string, depth int) (Prompt, error) {
	if !root.IsObject() {
		return Prompt{}, ErrUnknown
	}
	r := reader{prefix: prefix}
	r.find(root)
	switch {
	case r.member("messages").IsArray():
		r.chat()
	case r.member("contents").Exists():
		r.gemini()
	case r.member("prompt").Exists():
		r.completion("prompt")
	case r.member("input").Exists() && (r.member("model").Exists() || r.member("instructions").Exists()):
		r.responses()
	default:
		for _, name := range [...]string{"body", "params", "request", "input"} {
			inner := r.member(name)
			if inner.Type == gjson.String && validjson.Valid([]byte(inner.Str)) {
				inner = gjson.Parse(inner.Str)
			}
			if inner.IsObject() && depth < maxWrapped {
				if p, err := parseObject(inner, prefix+name+".", depth+1); err == nil {
					return p, nil
				}
			}
		}
		for _, name := range [...]string{"input_ids", "text"} {
			if r.member(name).Exists() {
				r.completion(name)
				break
			}
		}
	}
	if len(r.parts) == 0 && !r.partial {
		return Prompt{}, ErrUnknown
	}
	return r.prompt()
}

// maxParts bounds the parts of a prompt: what is kept of each takes many times the memory of the bytes that a client needs to send one.
const maxParts = 1 << 16

// prompt returns what was read.
func (r *reader) prompt() (Prompt, error) {
	if len(r.parts) > maxParts {
		return Prompt{}, fmt.Errorf("%w: %d parts, want at most %d", ErrInvalid, len(r.parts), maxParts)
	}
	return Prompt{Parts: r.parts, Partial: r.partial}, nil
}

// reader collects the parts of one body.
type reader struct {
	prefix  string
	members map[string]gjson.Result
	parts   []Part
	partial bool
	turn    int
	deep    int // lists in lists
}

// maxNested is how deep the content of a message is read.
const maxNested = 8

// find notes the members of the body. Of two with one name, the last one counts, as in most servers.
func (r *reader) find(root gjson.Result) {
	r.members = make(map[string]gjson.Result, 16)
	root.ForEach(func(key, value gjson.Result) bool {
		r.members[key.Str] = value
		return true
	})
}

func (r *reader) member(name string) gjson.Result { return r.members[name] }

// first returns the first of some members that is there, and its name.
func (r *reader) first(names ...string) (gjson.Result, string) {
	for _, name := range names {
		if v := r.member(name); v.Exists() && v.Type != gjson.Null {
			return v, name
		}
	}
	return gjson.Result{}, ""
}

func (r *reader) add(path string, kind Kind, role Role, turn int, text string) {
	if kind.json() && strings.ContainsAny(text, " \n\t") {
		text = compact(text)
	}
	if kind.json() {
		text = plainEscapes(text)
	}
	r.parts = append(r.parts, Part{Path: r.prefix + path, Kind: kind, Role: role, Turn: turn, Text: text})
}

// compact removes white space from JSON. What is no JSON stays as it is: some models write calls that are none.
func compact(text string) string {
	if text == "" || text[0] != '{' && text[0] != '[' {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil || b.Len() == len(text) {
		return text
	}
	return b.String()
}

// settings adds members that decide which cache is asked, as far as they are there.
func (r *reader) settings(names ...string) {
	for _, name := range names {
		v := r.member(name)
		if !v.Exists() || v.Type == gjson.Null {
			continue
		}
		text := v.Str
		if v.Type != gjson.String {
			text = v.Raw
		}
		r.add(name, Setting, System, Front, text)
	}
}

// salts are the members by which users keep caches apart.
var salts = []string{"cache_salt", "extra_key", "prompt_cache_key"}

// chat reads OpenAI's chat completions and Anthropic's messages.
func (r *reader) chat() {
	r.settings("model", "lora_path")
	r.settings(salts...)
	r.settings("reasoning_effort", "verbosity", "speed", "chat_template", "chat_template_kwargs")
	r.schema("response_format", "output_config", "output_format")
	tools, name := r.first("tools", "functions")
	r.tools(name, tools)
	if v := r.member("system"); v.Exists() {
		r.content("system", v, System, Front)
		r.settings("tool_choice", "thinking") // of Anthropic's API, where they stand in front of the messages
	}
	r.messages("messages", r.member("messages"))
	r.written()
}

// written reads a conversation that a program has written into its only message.
func (r *reader) written() {
	last := len(r.parts) - 1
	if last < 0 || r.parts[last].Kind != Text || r.parts[last].Role != User || r.parts[last].At != 0 {
		return
	}
	for i := range last {
		if p := &r.parts[i]; p.Turn != Front && p.Role != System {
			return
		}
	}
	p := r.parts[last]
	if len(spoken(p.Text)) < 3 {
		return
	}
	r.parts, r.turn = r.parts[:last], p.Turn
	r.transcript(strings.TrimPrefix(p.Path, r.prefix), p.Text)
}

// schema adds the schema of a structured answer.
func (r *reader) schema(names ...string) {
	if v, name := r.first(names...); v.IsObject() {
		r.add(name, Schema, System, Front, v.Raw)
	}
}

// tools adds the definitions of tools. Gemini has lists in the list.
func (r *reader) tools(path string, list gjson.Result) {
	if r.deep++; r.deep > maxNested {
		return
	}
	defer func() { r.deep-- }()
	i := 0
	list.ForEach(func(_, tool gjson.Result) bool {
		at := path + "[" + strconv.Itoa(i) + "]"
		i++
		for _, name := range [...]string{"functionDeclarations", "function_declarations"} {
			if inner := tool.Get(name); inner.IsArray() {
				r.tools(at+"."+name, inner)
				return true
			}
		}
		r.add(at, Function, System, Front, unmarked(tool))
		return true
	})
}

// unmarked returns the JSON of a tool without the marks of a cache, which are no part of the prompt.
func unmarked(tool gjson.Result) string {
	if !strings.Contains(tool.Raw, `"cache_control"`) && !strings.Contains(tool.Raw, `"prompt_cache_breakpoint"`) {
		return tool.Raw
	}
	var b strings.Builder
	tool.ForEach(func(key, value gjson.Result) bool {
		if !isMark(key.Str) {
			b.WriteString(strings.Repeat(",", min(b.Len(), 1)) + key.Raw + ":" + value.Raw)
		}
		return true
	})
	return "{" + b.String() + "}"
}

// isMark reports whether a member says what to cache.
func isMark(name string) bool { return name == "cache_control" || name == "prompt_cache_breakpoint" }

// completion adds a prompt without messages: a text, tokens, or a list of one of these.
func (r *reader) completion(name string) {
	r.settings("model", "lora_path")
	r.settings(salts...)
	v := r.member(name)
	switch {
	case v.Type == gjson.String:
		r.transcript(name, v.Str)
	case v.IsArray():
		list := v.Array()
		switch {
		case len(list) > 1 && list[0].Type != gjson.Number: // several prompts
			r.partial = true
		case len(list) > 0 && list[0].Type == gjson.String:
			r.transcript(name+"[0]", list[0].Str)
		default:
			r.add(name, Opaque, User, 0, v.Raw)
		}
	}
}
