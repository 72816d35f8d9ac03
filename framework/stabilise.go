package framework

import (
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/stabilise"
)

// Form is how a framework writes messages, for [Stabilised].
type Form[M any] struct {
	Read  func([]M) []Message
	Visit func(message M, text func(conversation.Text) string) M // see [Replace]
	Add   func(message M, text string) M                         // a copy of a user's message with one more text at its end
	New   func(role conversation.Role, text string) M            // a message of the system or of a user
	Clean func(message M) M                                      // a copy without texts that are empty; nil: the message has one text only
	// NoSystem says that system messages are taken at the beginning only, and KeepEmpty keeps one of which nothing stays.
	NoSystem, KeepEmpty bool
}

// Stabilised returns messages as they are to be sent, and what stands for how they begin. name is the conversation's. The messages given
// are not changed. A nil stabiliser changes nothing.
func Stabilised[M any](s *stabilise.Stabiliser, name string, messages []M, f Form[M]) (out []M, begins conversation.Sum) {
	if s == nil || !s.Rules().Any() {
		return messages, begins
	}
	read := f.Read(messages)
	in := make([]stabilise.Message, len(read))
	h := xxh3.New128()
	for i := range read {
		m := &read[i]
		in[i] = stabilise.Message{Role: m.Role, Sum: sumOf(h, 0, m)}
		for _, text := range m.Texts {
			in[i].Texts = append(in[i].Texts, text.Value)
		}
	}
	moved := s.Move(stabilise.Conversation{Name: name}, in, f.NoSystem)
	if len(moved.Texts)+len(moved.Behind) == 0 {
		return messages, moved.Begins
	}
	out = make([]M, 0, len(messages)+len(moved.Behind))
	for i, message := range messages {
		if texts, ok := moved.Texts[i]; ok {
			at := 0
			message = f.Visit(message, func(conversation.Text) string {
				at++
				return texts[at-1]
			})
			if read[i].Role == conversation.System && !f.KeepEmpty && nothing(texts, read[i].Other) {
				continue
			}
			if f.Clean != nil && read[i].Role == conversation.System {
				message = f.Clean(message)
			}
		}
		behind, ok := moved.Behind[i]
		switch {
		case !ok:
			out = append(out, message)
		case moved.System:
			out = append(out, message, f.New(conversation.System, behind))
		case read[i].Role == conversation.User:
			out = append(out, f.Add(message, behind))
		default:
			out = append(out, message, f.New(conversation.User, behind))
		}
	}
	return out, moved.Begins
}

// nothing reports whether nothing stays of a message.
func nothing(texts []string, other []any) bool {
	said := slices.ContainsFunc(texts, func(t string) bool { return t != "" })
	return !said && !slices.ContainsFunc(other, func(o any) bool { return o != "" })
}

// StabilisedTools returns the tools of a call in their order and form. label returns a tool's name, and form a copy of a tool whose schema
// went through value; nil: it has none. begins is that of [Stabilised]. The list given is not changed.
func StabilisedTools[T any](s *stabilise.Stabiliser, name string, begins conversation.Sum, tools []T, label func(T) string,
	form func(tool T, value func(any) any) T,
) []T {
	if s == nil || len(tools) == 0 {
		return tools
	}
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = label(tool)
	}
	out := make([]T, len(tools))
	for i, from := range s.Order(stabilise.Conversation{Name: name}, begins, names) {
		out[i] = tools[from]
		if form != nil && s.Rules().Schemas {
			out[i] = form(out[i], s.Value)
		}
	}
	return out
}

// Behind returns a text with what was moved behind it, for messages that are one text.
func Behind(text, moved string) string {
	if strings.TrimSpace(text) == "" {
		return moved
	}
	return text + "\n\n" + moved
}
