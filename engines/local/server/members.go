package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"time"
)

// members are those of a request's body.
type members map[string]json.RawMessage

// read reads a request's body. It waits no longer than the request's context lasts.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (members, error) {
	ctx, control := r.Context(), http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.config.IOTimeout)) // where there is no such thing, there is no slow client
	stop := context.AfterFunc(ctx, func() { _ = control.SetReadDeadline(time.Now()) })
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.config.MaxBody))
	stop()
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		e := wrong("", "the body has more than %d bytes", tooLong.Limit)
		e.status = http.StatusRequestEntityTooLarge
		return nil, e
	}
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), errShutdown):
		return nil, closing()
	case errors.Is(err, os.ErrDeadlineExceeded):
		e := wrong("", "the body did not come in %v", s.config.IOTimeout)
		e.status = http.StatusRequestTimeout
		return nil, e
	default:
		return nil, wrong("", "the body could not be read")
	}
	_ = control.SetReadDeadline(time.Time{})
	return parse(body)
}

// parse reads a JSON object.
func parse(body []byte) (members, error) {
	var m members
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, wrong("", "the body is not a JSON object: %s", shorten(err.Error(), 200))
	}
	if m == nil {
		return nil, wrong("", "the body is null, want a JSON object")
	}
	return m, nil
}

// given tells a value from none and null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// get reads a member. One that is not there, or null, leaves to as it is.
func (m members) get(name string, to any, want string) error {
	raw := m[name]
	if !given(raw) {
		return nil
	}
	if json.Unmarshal(raw, to) != nil {
		return wrong(name, "%s %s: want %s", name, excerpt(raw), want)
	}
	return nil
}

// excerpt is a value for an error message.
func excerpt(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return shorten(string(raw), 80)
	}
	return shorten(b.String(), 80)
}

// engineMembers are those that the engine reads itself.
var engineMembers = map[string]bool{
	"temperature": true, "top_p": true, "seed": true, "stop": true, "max_tokens": true, "max_completion_tokens": true,
	"ignore_eos": true, "cache_salt": true, "repetition_penalty": true, "no_repeat_ngram_size": true, "context": true, "reuse": true, "recompute": true,
}

// neutral are members that would change the answer and are not understood, with the values that change nothing. null is always
// one of them.
var neutral = map[string][]any{
	"n": {1.}, "best_of": {1.}, "presence_penalty": {0.}, "frequency_penalty": {0.}, "top_k": {-1., 0.},
	"min_p": {0.}, "min_tokens": {0.}, "logit_bias": {map[string]any{}}, "stop_token_ids": {[]any{}}, "logprobs": {false},
	"top_logprobs": {0.}, "prompt_logprobs": {}, "echo": {false}, "suffix": {""}, "tools": {[]any{}}, "tool_choice": {"none", "auto"},
	"functions": {[]any{}}, "function_call": {"none", "auto"}, "response_format": {map[string]any{"type": "text"}},
	"structured_outputs": {}, "guided_json": {}, "guided_regex": {}, "guided_choice": {}, "guided_grammar": {}, "guided_whitespace_pattern": {},
	"structural_tag": {}, "use_beam_search": {false}, "bad_words": {[]any{}}, "allowed_token_ids": {[]any{}}, "logits_processors": {[]any{}},
	"include_stop_str_in_output": {false}, "skip_special_tokens": {true}, "reasoning_effort": {"none"}, "documents": {[]any{}},
	"modalities": {[]any{"text"}}, "audio": {}, "truncate_prompt_tokens": {}, "prompt_embeds": {}, "add_generation_prompt": {true},
	"continue_final_message": {false}, "chat_template": {}, "chat_template_kwargs": {map[string]any{}},
}

// understood refuses what is not.
func (m members) understood() error {
	for name, raw := range m {
		values, ok := neutral[name]
		if !ok || !given(raw) {
			continue
		}
		var v any
		if json.Unmarshal(raw, &v) != nil || !contains(values, v) {
			return wrong(name, "%s %s: not supported by this server", name, excerpt(raw))
		}
	}
	return nil
}

func contains(values []any, v any) bool {
	for _, x := range values {
		if reflect.DeepEqual(x, v) {
			return true
		}
	}
	return false
}
