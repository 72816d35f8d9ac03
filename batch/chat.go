package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/engines"
)

// bodyText returns a text of a chat's body by which it is ordered: its messages in front, so that bodies with the same first messages have
// the same beginning, and all its other members behind, so that equal texts are equal requests.
func bodyText(body json.RawMessage) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return "", err
	}
	if err := checkBody(members); err != nil {
		return "", err
	}
	messages := members["messages"]
	delete(members, "messages")
	var b bytes.Buffer
	list := gjson.ParseBytes(messages)
	if !list.IsArray() || len(list.Array()) == 0 {
		return "", errors.New("body.messages: want a list of messages")
	}
	for _, m := range list.Array() {
		content := m.Get("content")
		b.WriteString(m.Get("role").String() + "\n")
		if content.Type == gjson.String {
			b.WriteString(content.String() + "\x00")
		}
		var whole bytes.Buffer
		if err := json.Compact(&whole, []byte(m.Raw)); err != nil {
			return "", err
		}
		if content.Type != gjson.String || m.Get("@keys.#").Int() > 2 {
			b.Write(whole.Bytes())
		}
		b.WriteByte(0)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		b.WriteString(name + "=")
		if err := json.Compact(&b, members[name]); err != nil {
			return "", err
		}
		b.WriteByte(0)
	}
	return b.String(), nil
}

// checkBody refuses what asks for more of an answer than its text, which is all that is kept.
func checkBody(members map[string]json.RawMessage) error {
	for _, name := range []string{"audio", "functions", "logprobs", "modalities", "n", "tools", "top_logprobs"} {
		value, ok := members[name]
		switch text := string(value); {
		case !ok, text == "null", text == "false", text == "[]", name == "n" && text == "1", name == "modalities" && text == `["text"]`:
		default:
			return fmt.Errorf("body.%s: %s cannot be had: only the text of an answer is kept", name, shorten(text))
		}
	}
	return nil
}

// bodyRequest returns the request of a chat's body. All members are sent as they are. Messages is for engines without HTTP, and has the texts.
func bodyRequest(body json.RawMessage) (engines.Request, error) {
	var req engines.Request
	if err := json.Unmarshal(body, &req.Extra); err != nil {
		return req, fmt.Errorf("body: %w", err)
	}
	for _, m := range gjson.GetBytes(body, "messages").Array() {
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
	// Answers are streamed by the engine, and bounds are also for engines that do not read bodies.
	delete(req.Extra, "stream")
	delete(req.Extra, "stream_options")
	req.Model = gjson.GetBytes(body, "model").String()
	req.MaxTokens = int(gjson.GetBytes(body, "max_tokens").Int())
	if t := gjson.GetBytes(body, "temperature"); t.Type == gjson.Number {
		temperature := t.Float()
		req.Temperature = &temperature
	}
	return req, nil
}
