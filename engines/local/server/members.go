package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"

	"github.com/ragpilot/ragpilot/internal/openaiserver"
)

// members are those of a request's body.
type members map[string]json.RawMessage

// read reads a request's body. It waits no longer than the request's context lasts.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (members, error) {
	var body bytes.Buffer
	if err := openaiserver.ReadBody(w, r, &body, s.config.MaxBody, s.config.IOTimeout); err != nil {
		return nil, err
	}
	return parse(body.Bytes())
}

// parse reads a JSON object.
func parse(body []byte) (members, error) {
	var m members
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, openaiserver.Wrong("", "the body is not a JSON object: %s", openaiserver.Shorten(err.Error(), 200))
	}
	if m == nil {
		return nil, openaiserver.Wrong("", "the body is null, want a JSON object")
	}
	return m, nil
}

// get reads a member. One that is not there, or null, leaves to as it is.
func (m members) get(name string, to any, want string) error {
	raw := m[name]
	if !openaiserver.Given(raw) {
		return nil
	}
	if json.Unmarshal(raw, to) != nil {
		return openaiserver.Wrong(name, "%s %s: want %s", name, openaiserver.Excerpt(raw), want)
	}
	return nil
}

// What a member may be.
const (
	aText        = "a text"
	aNumber      = "a number"
	aWholeNumber = "a whole number"
	aBool        = "true or false"
)

// engineMembers are those that the engine reads itself, which checks their values. Only their types are checked here; "": not even these.
var engineMembers = []struct{ name, want string }{
	{"temperature", aNumber},
	{"top_p", aNumber},
	{"seed", aWholeNumber},
	{"stop", ""},
	{"max_tokens", aWholeNumber},
	{"max_completion_tokens", aWholeNumber},
	{"ignore_eos", aBool},
	{"cache_salt", aText},
	{"context", aText},
	{"repetition_penalty", aNumber},
	{"no_repeat_ngram_size", aWholeNumber},
	{"reuse", aText},
	{"recompute", aNumber},
}

func isEngineMember(name string) bool {
	for _, m := range engineMembers {
		if m.name == name {
			return true
		}
	}
	return false
}

// forEngine returns the members that the engine reads.
func (m members) forEngine() (map[string]json.RawMessage, error) {
	places := map[string]any{"": new(json.RawMessage), aText: new(string), aNumber: new(float64), aWholeNumber: new(int64), aBool: new(bool)}
	extra := map[string]json.RawMessage{}
	for _, x := range engineMembers {
		raw := m[x.name]
		if !openaiserver.Given(raw) {
			continue
		}
		if err := m.get(x.name, places[x.want], x.want); err != nil {
			return nil, err
		}
		if len(raw) > 64<<10 {
			return nil, openaiserver.Wrong(x.name, "%s %s: too long", x.name, openaiserver.Excerpt(raw))
		}
		extra[x.name] = raw
	}
	var stops []json.RawMessage
	if json.Unmarshal(m["stop"], &stops) == nil && len(stops) > maxStops {
		return nil, openaiserver.Wrong("stop", "stop: %d texts, want at most %d", len(stops), maxStops)
	}
	return extra, nil
}

// neutral are members that would change the answer and are not understood, with the values that change nothing. null is always
// one of them.
var neutral = map[string][]any{
	"n": {1.}, "best_of": {1.}, "presence_penalty": {0.}, "frequency_penalty": {0.}, "top_k": {-1., 0.},
	"min_p": {0.}, "min_tokens": {0.}, "logit_bias": {map[string]any{}}, "stop_token_ids": {[]any{}}, "logprobs": {false},
	"top_logprobs": {0.}, "prompt_logprobs": {}, "echo": {false}, "suffix": {""}, "tools": {[]any{}}, "tool_choice": {"none", "auto"},
	"functions": {[]any{}}, "function_call": {"none", "auto"}, "response_format": {map[string]any{"type": "text"}},
	"structured_outputs": {}, "guided_json": {}, "guided_regex": {}, "guided_choice": {}, "guided_grammar": {},
	"guided_whitespace_pattern": {},
	"structural_tag":            {}, "use_beam_search": {false}, "bad_words": {[]any{}}, "allowed_token_ids": {[]any{}},
	"logits_processors":          {[]any{}},
	"include_stop_str_in_output": {false}, "skip_special_tokens": {true}, "reasoning_effort": {"none"}, "documents": {[]any{}},
	"modalities": {[]any{"text"}}, "audio": {}, "truncate_prompt_tokens": {}, "prompt_embeds": {}, "add_generation_prompt": {true},
	"continue_final_message": {false}, "chat_template": {}, "chat_template_kwargs": {map[string]any{}},
}

// understood refuses what is not.
func (m members) understood() error {
	for name, raw := range m {
		values, ok := neutral[name]
		if !ok || !openaiserver.Given(raw) {
			continue
		}
		var v any
		if json.Unmarshal(raw, &v) != nil || !slices.ContainsFunc(values, func(x any) bool { return reflect.DeepEqual(x, v) }) {
			return openaiserver.Wrong(name, "%s %s: not supported by this server", name, openaiserver.Excerpt(raw))
		}
	}
	return nil
}
