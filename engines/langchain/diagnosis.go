package langchain

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/prefixdiff"
)

// WithDiagnosis has each call compared with earlier ones once it has been answered: its messages as they were sent, its model and its
// tools. missed is called, on the goroutine of the call, if the prompt was not in the engine's cache as far as it could have been; with
// cached tokens in the answer, what the engine had all the same counts, too. Several wrappers may have one index, if their engine shares
// one cache. The places in findings are like those of an OpenAI body: messages[0].content[0].text. The index keeps hashes alone, unless
// it was made to keep texts. [prefixdiff.Recent] keeps the last findings: its Add is such a function.
func WithDiagnosis(index *prefixdiff.Index, missed func(context.Context, prefixdiff.Finding)) Option {
	return func(s *settings) {
		if index != nil && missed != nil {
			s.diagnosis = &diagnosis{index, missed}
		}
	}
}

// diagnosis finds out why prompts were not in the cache.
type diagnosis struct {
	index  *prefixdiff.Index
	missed func(context.Context, prefixdiff.Finding)
}

// answered compares a call that was answered. A nil diagnosis does nothing.
func (d *diagnosis) answered(
	ctx context.Context, messages []llms.MessageContent, options []llms.CallOption, response *llms.ContentResponse,
) {
	if d == nil {
		return
	}
	o := applied(options, llms.CallOptions{})
	prompt := promptOf(messages, &o)
	if f, ok := d.index.Observe(prompt, seenIn(response, prompt)); ok {
		d.missed(ctx, f)
	}
}

// promptOf returns what the model reads.
func promptOf(messages []llms.MessageContent, o *llms.CallOptions) prefixdiff.Prompt {
	var p prefixdiff.Prompt
	add := func(path string, kind prefixdiff.Kind, role prefixdiff.Role, turn int, text string) {
		p.Parts = append(p.Parts, prefixdiff.Part{Path: path, Kind: kind, Role: role, Turn: turn, Text: text})
	}
	if o.Model != "" {
		add("model", prefixdiff.Setting, prefixdiff.System, prefixdiff.Front, o.Model)
	}
	define := func(name string, i int, tool any) {
		if raw, err := json.Marshal(tool); err == nil {
			add(name+"["+strconv.Itoa(i)+"]", prefixdiff.Function, prefixdiff.System, prefixdiff.Front, string(raw))
		}
	}
	for i := range o.Tools {
		define("tools", i, &o.Tools[i])
	}
	for i := range o.Functions { // deprecated, but still set
		define("functions", i, &o.Functions[i])
	}
	for turn, m := range messages {
		role := diffRole(m.Role)
		for i, part := range m.Parts {
			at := "messages[" + strconv.Itoa(turn) + "].content[" + strconv.Itoa(i) + "]"
			switch c := value(part).(type) {
			case llms.TextContent:
				add(at+".text", prefixdiff.Text, role, turn, c.Text)
			case llms.ImageURLContent:
				add(at+".image_url.url", prefixdiff.Media, role, turn, c.URL)
			case llms.BinaryContent:
				add(at+".binary.data", prefixdiff.Media, role, turn, string(c.Data))
			case llms.ToolCall:
				add(at+".id", prefixdiff.Ident, prefixdiff.Assistant, turn, c.ID)
				if f := c.FunctionCall; f != nil {
					add(at+".function.name", prefixdiff.Name, prefixdiff.Assistant, turn, f.Name)
					add(at+".function.arguments", prefixdiff.Arguments, prefixdiff.Assistant, turn, f.Arguments)
				}
			case llms.ToolCallResponse:
				add(at+".tool_call_id", prefixdiff.Ident, prefixdiff.Tool, turn, c.ToolCallID)
				add(at+".text", prefixdiff.Text, prefixdiff.Tool, turn, c.Content)
			default:
				raw, _ := json.Marshal(part)
				add(at, prefixdiff.Opaque, role, turn, string(raw))
			}
		}
	}
	return p
}

// value returns what a part points to, if it is a pointer, as some programs have them.
func value(part llms.ContentPart) any {
	if v := reflect.ValueOf(part); v.Kind() == reflect.Pointer && !v.IsNil() {
		return v.Elem().Interface()
	}
	return part
}

func diffRole(role llms.ChatMessageType) prefixdiff.Role {
	switch role {
	case llms.ChatMessageTypeSystem:
		return prefixdiff.System
	case llms.ChatMessageTypeAI:
		return prefixdiff.Assistant
	case llms.ChatMessageTypeTool, llms.ChatMessageTypeFunction:
		return prefixdiff.Tool
	}
	return prefixdiff.User
}

// seenIn returns what the answer says of the cache, with tokens as prefixdiff estimates them. Clients that report no cached tokens leave
// the key out, or write 0, as they do if none were cached: only a number above 0 is known.
func seenIn(response *llms.ContentResponse, p prefixdiff.Prompt) prefixdiff.Seen {
	if response == nil {
		return prefixdiff.Seen{}
	}
	i := slices.IndexFunc(response.Choices, func(c *llms.ContentChoice) bool { return c != nil })
	if i < 0 {
		return prefixdiff.Seen{}
	}
	info := response.Choices[i].GenerationInfo
	cached := count(info, cachedKeys())
	if cached == 0 {
		return prefixdiff.Seen{}
	}
	all := count(info, []string{"PromptTokens"})
	if all == 0 { // Anthropic counts apart what was read and written
		all = count(info, []string{"InputTokens"}) + cached + count(info, []string{"CacheCreationInputTokens"})
	}
	if n := p.Tokens(); n > 0 && all >= cached {
		cached = int(int64(cached) * int64(n) / int64(all))
	}
	return prefixdiff.Seen{Known: true, Cached: cached}
}
