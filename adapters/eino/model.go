package eino

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/stabilise"
)

type chat struct {
	inner      model.BaseChatModel
	turns      *framework.Calls
	stabiliser *stabilise.Stabiliser // nil: none
	bound      []*schema.ToolInfo    // that inner was given
}

// toolChat is a chat whose inner model can be given tools; only it has the method, so that a graph that looks for it gets
// inner's answer.
type toolChat struct {
	*chat
	tools model.ToolCallingChatModel
}

var (
	_ model.BaseChatModel        = (*chat)(nil)
	_ model.ToolCallingChatModel = toolChat{}
)

// ChatModel returns a model that calls inner and keeps the pilot informed; see the package's documentation. It is safe for
// concurrent use if inner is, and implements [model.ToolCallingChatModel] if inner does.
func ChatModel(pilot *contextpilot.Pilot, inner model.BaseChatModel, opts ...Option) model.BaseChatModel {
	o := framework.NewWrapOptions(opts)
	c := &chat{inner: inner, turns: o.Calls(pilot), stabiliser: o.Stabiliser}
	if tools, ok := inner.(model.ToolCallingChatModel); ok {
		return toolChat{c, tools}
	}
	return c
}

// WithTools returns the wrapper of inner with tools; both know the same conversations.
func (c toolChat) WithTools(tools []*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	inner, err := c.tools.WithTools(tools)
	if err != nil {
		return nil, err
	}
	return toolChat{&chat{inner: inner, turns: c.turns, stabiliser: c.stabiliser, bound: tools}, inner}, nil
}

// Generate calls inner, with the request's plan worked into the messages if there is one.
func (c *chat) Generate(ctx context.Context, input []*schema.Message, opts ...model.Option) (answer *schema.Message, err error) {
	name := framework.ConversationFrom(ctx)
	input, opts = c.stabilised(name, input, opts)
	call := c.turns.Begin(name, read(input))
	defer func() { call.End(outcome(answer)) }() // also when inner panics: nothing else would take the request back
	return c.inner.Generate(ctx, framework.Replace(input, call.Replacements, visited), opts...)
}

// Stream calls inner like Generate. The outcome is reported to the pilot when the stream ends or is closed.
func (c *chat) Stream(ctx context.Context, input []*schema.Message, opts ...model.Option) (out *schema.StreamReader[*schema.Message],
	err error,
) {
	name := framework.ConversationFrom(ctx)
	input, opts = c.stabilised(name, input, opts)
	call := c.turns.Begin(name, read(input))
	defer func() {
		if out == nil {
			call.End(outcome(nil))
		}
	}()
	stream, err := c.inner.Stream(ctx, framework.Replace(input, call.Replacements, visited), opts...)
	if err != nil || stream == nil || !call.Planned {
		return stream, err
	}
	out, writer := schema.Pipe[*schema.Message](1)
	go forward(stream, writer, call)
	return out, nil
}

// forward passes a stream on until it ends, or its reader stops. A stream that broke off after its first piece has been
// computed and is in the engine's cache.
func forward(from *schema.StreamReader[*schema.Message], to *schema.StreamWriter[*schema.Message], call *framework.Call) {
	var last *schema.Message
	defer to.Close()
	defer func() { call.End(outcome(last)) }()
	defer from.Close()
	for {
		piece, err := from.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		if piece != nil && (last == nil || usage(piece) != nil || usage(last) == nil) {
			last = piece
		}
		if to.Send(piece, err) || err != nil {
			return
		}
	}
}

// outcome returns what became of a request, by its answer or the piece of it that has the usage; nil: there was no answer.
func outcome(answer *schema.Message) contextpilot.Event {
	if answer == nil {
		return framework.Outcome(false, 0, 0)
	}
	u := usage(answer)
	if u == nil {
		u = &schema.TokenUsage{}
	}
	return framework.Outcome(true, u.PromptTokenDetails.CachedTokens, u.CompletionTokens)
}

func usage(m *schema.Message) *schema.TokenUsage {
	if m.ResponseMeta == nil {
		return nil
	}
	return m.ResponseMeta.Usage
}

// read returns the messages as they are looked at.
func read(messages []*schema.Message) []framework.Message {
	out := make([]framework.Message, len(messages))
	for i, msg := range messages {
		m := &out[i]
		m.Role = framework.RoleNamed(string(msg.Role))
		visited(msg, m.Note)
		for _, call := range msg.ToolCalls {
			m.Calls = append(m.Calls, conversation.Call{ID: call.ID, Tool: call.Function.Name})
			m.Other = append(m.Other, call.Function.Arguments)
		}
		m.Other = append(m.Other, msg.Name, msg.ReasoningContent)
		if len(msg.MultiContent)+len(msg.UserInputMultiContent)+len(msg.AssistantGenMultiContent)+len(msg.Extra) > 0 {
			m.Other = append(m.Other, msg)
		}
	}
	return out
}

// visited calls visit for each text of a message, and returns the message with what that returns, copied.
func visited(msg *schema.Message, visit func(conversation.Text) string) *schema.Message {
	m := *msg
	set := func(text *string) {
		*text = visit(conversation.Text{Value: *text, Call: m.ToolCallID, Tool: m.ToolName})
	}
	switch {
	case len(m.UserInputMultiContent) > 0:
		m.UserInputMultiContent = slices.Clone(m.UserInputMultiContent)
		for i := range m.UserInputMultiContent {
			if part := &m.UserInputMultiContent[i]; part.Text != "" {
				set(&part.Text)
			}
		}
	case len(m.MultiContent) > 0: // deprecated, and still read in place of Content
		m.MultiContent = slices.Clone(m.MultiContent)
		for i := range m.MultiContent {
			if part := &m.MultiContent[i]; part.Text != "" {
				set(&part.Text)
			}
		}
	default:
		set(&m.Content)
	}
	return &m
}
