package memory_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"
	lcmemory "github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/memory"
)

// message returns a message of a call as text, with its role.
func message(m llms.MessageContent) string {
	text := string(m.Role) + ": "
	for _, part := range m.Parts {
		text += part.(llms.TextContent).Text
	}
	return text
}

// begins reports whether a call begins with all that another one sent.
func begins(call, before []llms.MessageContent) bool {
	if len(call) == 1 && len(before) == 1 {
		return strings.HasPrefix(message(call[0]), message(before[0]))
	}
	if len(call) < len(before) {
		return false
	}
	return slices.EqualFunc(call[:len(before)], before, func(a, b llms.MessageContent) bool { return message(a) == message(b) })
}

// talk is a conversation of which the history is read turn by turn.
type talk struct {
	t     *testing.T
	ctx   context.Context
	inner schema.Memory
	m     schema.Memory
}

// newTalk wraps a buffer, or inner if it is not nil; nothing is stored of the turns.
func newTalk(t *testing.T, inner schema.Memory, store memory.Store, opts ...memory.Option) *talk {
	if inner == nil {
		inner = lcmemory.NewConversationBuffer()
	}
	opts = append([]memory.Option{memory.WithoutSaving(), memory.WithHeading("Known:")}, opts...)
	ctx := memory.WithScope(framework.WithConversation(t.Context(), "thread-7"), ana)
	return &talk{t: t, ctx: ctx, inner: inner, m: memory.Wrap(newPilot(t), inner, store, opts...)}
}

// load returns the history for an input.
func (c *talk) load(input string) string {
	c.t.Helper()
	vars, err := c.m.LoadMemoryVariables(c.ctx, map[string]any{"input": input})
	if err != nil {
		c.t.Fatal(err)
	}
	return vars["history"].(string)
}

// turn loads, and saves an answer.
func (c *talk) turn(input string) string {
	c.t.Helper()
	history := c.load(input)
	if err := c.m.SaveContext(c.ctx, map[string]any{"input": input}, map[string]any{"text": "I see."}); err != nil {
		c.t.Fatal(err)
	}
	return history
}

// has checks how many times texts stand in a history.
func has(t *testing.T, history string, texts map[string]int) {
	t.Helper()
	for text, want := range texts {
		if n := strings.Count(history, text); n != want {
			t.Errorf("%q stands %d times, want %d:\n%s", text, n, want, history)
		}
	}
}

// shown returns the best memory as it stands in a prompt.
func shown(t *testing.T, store memory.Store, input string) string {
	t.Helper()
	return newTalk(t, &changing{Memory: lcmemory.NewSimple()}, store, memory.WithK(1), memory.WithHeading("")).load(input)
}
