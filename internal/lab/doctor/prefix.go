package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// prefix is what the requests of a user share.
type prefix struct {
	messages []map[string]any // all of them before the first difference
	text     string           // at the beginning of the message that then differs
	tools    json.RawMessage
}

// parsePrefix reads a text, or the body of a chat: then all is shared but the last message, if it is the user's.
func parsePrefix(data string) (*prefix, error) {
	switch {
	case strings.TrimSpace(data) == "":
		return nil, errors.New("it is empty")
	case !utf8.ValidString(data):
		return nil, errors.New("it is not UTF-8")
	case !strings.HasPrefix(strings.TrimSpace(data), "{") || !json.Valid([]byte(data)):
		return &prefix{text: data}, nil
	}
	var body struct {
		System   any              `json:"system"`
		Messages []map[string]any `json:"messages"`
		Tools    json.RawMessage  `json:"tools"`
	}
	if err := json.Unmarshal([]byte(data), &body); err != nil {
		return nil, fmt.Errorf("a request body: %w", err)
	}
	if len(body.Messages) == 0 {
		return nil, errors.New("a request body without messages")
	}
	p := &prefix{tools: body.Tools}
	if string(p.tools) == "null" || string(p.tools) == "[]" {
		p.tools = nil
	}
	if body.System != nil {
		p.messages = append(p.messages, map[string]any{"role": "system", "content": body.System})
	}
	p.messages = append(p.messages, body.Messages...)
	if last := len(p.messages) - 1; p.messages[last]["role"] == "user" {
		p.messages = p.messages[:last]
	}
	if len(p.messages) == 0 && p.tools == nil {
		return nil, errors.New("a request body whose only message is the user's, which is taken for what differs: give the text that is " +
			"shared")
	}
	return p, nil
}

// body is a chat that begins with the prefix, and whose text then goes on with rest.
func (p *prefix) body(model, rest string) ([]byte, error) {
	last := map[string]any{"role": "user", "content": p.text + rest}
	body := map[string]any{"messages": append(slices.Clone(p.messages), last)}
	if p.tools != nil {
		body["tools"] = p.tools
	}
	if model != "" {
		body["model"] = model
	}
	return json.Marshal(body)
}

// flat is all text of the prefix.
func (p *prefix) flat() string {
	var b strings.Builder
	b.Write(p.tools)
	for _, m := range p.messages {
		switch content := m["content"].(type) {
		case string:
			b.WriteString(content)
		case []any:
			for _, part := range content {
				if part, ok := part.(map[string]any); ok {
					text, _ := part["text"].(string)
					b.WriteString(text)
				}
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString(p.text)
	return b.String()
}

// prefixTokens counts the tokens of the prefix: by the server's tokenizer, of two chats that part behind it or of its text; else by an
// estimate, set right by what the server counted for the probe.
func (x *exam) prefixTokens(ctx context.Context, p *prefix) (n int, by string, exact bool) {
	if x.facts.prompt != nil && !x.strange {
		if n, err := x.sharedBy(ctx, p); err == nil {
			return n, "by the server's tokenizer, with the chat template", true
		}
	}
	text := p.flat()
	if x.facts.count != nil && !x.strange {
		if n, err := x.facts.count(ctx, text); err == nil {
			return n, "by the server's tokenizer, without the chat template", false
		}
	}
	n = contextpilot.Estimate{}.Count(text)
	if used := x.first.usage.PromptTokens; used > 0 {
		return n * used / contextpilot.Estimate{}.Count(x.text), "estimated, at the rate of the probe", false
	}
	return n, "estimated", false
}

// sharedBy counts the first tokens that two chats with the prefix share.
func (x *exam) sharedBy(ctx context.Context, p *prefix) (int, error) {
	var tokens [2][]uint32
	for i, rest := range []string{"What is asked?", "1 other question"} {
		body, err := p.body(x.model, rest)
		if err != nil {
			return 0, err
		}
		if tokens[i], err = x.facts.prompt(ctx, body); err != nil {
			return 0, err
		}
	}
	return differ(tokens[0], tokens[1]), nil
}

// prefix compares what the user's requests share with a block.
func (x *exam) prefix(ctx context.Context) {
	const name = "your prefix"
	p := x.cfg.prefix
	if p == nil {
		return
	}
	if x.moving {
		x.add(name, NotKnown, "the chat template makes another prompt of the same text each time", "")
		return
	}
	n, by, exact := x.prefixTokens(ctx, p)
	size := fmt.Sprintf("%d tokens (%s)", n, by)
	low, high := n, n
	if !exact {
		low, high = n*3/4, n*4/3
	}
	do := "put more of what stays the same in front of what differs (instructions, tools, examples, documents)"
	if flag := map[Kind]string{VLLM: "--block-size", SGLang: "--page-size"}[x.kind]; flag != "" && !x.facts.own() {
		do += ", or lower " + flag
	}
	b := x.block
	switch {
	case b.most == 0:
		x.add(name, NotKnown, size+"; the length of a cache block is not known, often 16", "")
	case high < b.least:
		x.add(name, Problem, fmt.Sprintf("your shared prefix is shorter than one cache block, and never reused: %s, a block has %v", size, b), do)
	case low < b.most:
		x.add(name, Warning, fmt.Sprintf("your shared prefix may be shorter than one cache block: %s, a block has %v", size, b), do)
	case b.most == 1:
		x.add(name, OK, size+": reuse is counted in single tokens", "")
	default:
		x.add(name, OK, fmt.Sprintf("%s: %d of them in whole blocks of %d", size, n/b.most*b.most, b.most), "")
	}
}
