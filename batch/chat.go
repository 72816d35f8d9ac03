package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/engines"
)

// beforeMessages names the members of a body that decide which cache its prompt goes to, or what stands in front of its messages.
var beforeMessages = []string{"model", "cache_salt", "chat_template_kwargs", "lora", "tools"}

// bodyText returns a text of a chat's body by which bodies are ordered. Bodies that begin with the same messages have texts that begin
// alike, if they can share a prefix at all: [beforeMessages] stand in front. Bodies have equal texts only if they differ in nothing but
// white space and the order of members.
func bodyText(body json.RawMessage) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return "", fmt.Errorf("body: %w", err)
	}
	messages := gjson.ParseBytes(members["messages"])
	if !messages.IsArray() || len(messages.Array()) == 0 {
		return "", fmt.Errorf("body.messages: %s, want a list of messages", shorten(orMissing(messages.Raw)))
	}
	delete(members, "messages")
	var b bytes.Buffer
	add := func(name string) error {
		value, ok := members[name]
		if !ok {
			return nil
		}
		delete(members, name)
		return addMember(&b, name, value, '\n')
	}
	for _, name := range beforeMessages {
		if err := add(name); err != nil {
			return "", err
		}
	}
	for i, m := range messages.Array() {
		if err := addMessage(&b, m); err != nil {
			return "", fmt.Errorf("body.messages[%d]: %w", i, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if err := add(name); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// addMember writes a member of an object without white space, which has no line feed then.
func addMember(b *bytes.Buffer, name string, value json.RawMessage, end byte) error {
	quoted, err := json.Marshal(name)
	if err != nil {
		return err
	}
	b.Write(quoted)
	b.WriteByte(':')
	if err := json.Compact(b, value); err != nil {
		return err
	}
	b.WriteByte(end)
	return nil
}

// addMessage writes a line with the members of a message: its role, its content, and the others.
func addMessage(b *bytes.Buffer, m gjson.Result) (err error) {
	if !m.IsObject() {
		return fmt.Errorf("%s, want an object", shorten(m.Raw))
	}
	members := map[string]json.RawMessage{}
	m.ForEach(func(key, value gjson.Result) bool {
		if _, twice := members[key.Str]; twice {
			err = fmt.Errorf("the member %q stands there twice", shorten(key.Str))
		}
		members[key.Str] = json.RawMessage(value.Raw)
		return err == nil
	})
	if err != nil {
		return err
	}
	if role := m.Get("role"); role.Type != gjson.String || role.Str == "" {
		return fmt.Errorf("role: %s, want a text", shorten(orMissing(role.Raw)))
	}
	names := []string{"role"}
	if _, ok := members["content"]; ok {
		names = append(names, "content")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != "role" && name != "content" {
			names = append(names, name)
		}
	}
	b.WriteByte('{')
	for i, name := range names {
		end := byte(',')
		if i == len(names)-1 {
			end = '}'
		}
		if err := addMember(b, name, members[name], end); err != nil {
			return err
		}
	}
	b.WriteByte('\n')
	return nil
}

// orMissing is a value in an error, or that there is none.
func orMissing(raw string) string {
	if raw == "" {
		return "missing"
	}
	return raw
}

// beyondText are the members of a body that ask for more than the text of one answer, and values with which they do not.
var beyondText = map[string][]string{
	"audio": nil, "functions": {"[]"}, "logprobs": {"false", "0"}, "modalities": {`["text"]`}, "n": {"1"}, "tools": {"[]"},
	"top_logprobs": {"0"},
}

// asksMore returns the first member, by name, that asks for more than the text of one answer, with its value; empty: none does.
func asksMore(members map[string]json.RawMessage) string {
	for _, name := range slices.Sorted(maps.Keys(beyondText)) {
		value, ok := members[name]
		if !ok {
			continue
		}
		var b bytes.Buffer
		if err := json.Compact(&b, value); err != nil {
			continue // it is no JSON, and refused as such
		}
		if text := b.String(); text != "null" && !slices.Contains(beyondText[name], text) {
			return name + ": " + shorten(text)
		}
	}
	return ""
}

// choicesAsked returns how many answers a body asks for, if it asks for more than the text of one; else 0.
func choicesAsked(members map[string]json.RawMessage) int {
	if asksMore(members) == "" {
		return 0
	}
	return int(max(1, min(gjson.ParseBytes(members["n"]).Num, math.MaxInt16)))
}

// onlyText returns an error for a body that asks for more than the text of one answer.
func onlyText(body json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if more := asksMore(members); more != "" {
		return fmt.Errorf("body.%s is not possible: the engine gives the text of one answer only", more)
	}
	return nil
}

// bodyRequest returns the request of a chat's body. Extra has its members, byte for byte, but for those about streaming: the engine
// streams, and what is kept of an answer is the same. Model, Messages, MaxTokens and Temperature say what these members do to engines that
// read no bodies; Messages has their texts only.
func bodyRequest(body json.RawMessage) (engines.Request, error) {
	var req engines.Request
	if err := json.Unmarshal(body, &req.Extra); err != nil {
		return req, fmt.Errorf("body: %w", err)
	}
	if req.Extra == nil {
		return req, errors.New("body: null, want an object")
	}
	for _, m := range gjson.ParseBytes(req.Extra["messages"]).Array() {
		content := m.Get("content")
		text := content.String()
		if content.IsArray() {
			var b strings.Builder
			for _, part := range content.Array() {
				b.WriteString(part.Get("text").String())
			}
			text = b.String()
		}
		req.Messages = append(req.Messages, engines.Message{Role: engines.Role(m.Get("role").String()), Content: text})
	}
	delete(req.Extra, "stream")
	delete(req.Extra, "stream_options")
	req.Model = gjson.ParseBytes(req.Extra["model"]).String()
	if t := gjson.ParseBytes(req.Extra["temperature"]); t.Type == gjson.Number && !math.IsInf(t.Num, 0) {
		req.Temperature = &t.Num
	}
	bound(&req)
	return req, nil
}

// bound takes MaxTokens from the members of a body, if it has such a bound. An engine that is sent max_completion_tokens is not sent
// max_tokens as well: some refuse both.
func bound(r *engines.Request) {
	for _, name := range []string{"max_completion_tokens", "max_tokens"} {
		n := gjson.ParseBytes(r.Extra[name])
		if n.Type != gjson.Number {
			continue
		}
		r.MaxTokens = int(max(0, min(n.Num, math.MaxInt32)))
		if _, ok := r.Extra["max_tokens"]; !ok {
			r.Extra["max_tokens"] = nil
		}
		return
	}
}
