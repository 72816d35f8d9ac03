package genkit

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/firebase/genkit/go/ai"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
)

// Middleware returns a middleware for models that keeps the pilot informed; see the package's documentation. Keep one for
// all calls of a model: it remembers what it sent in earlier turns. It is safe for concurrent use.
func Middleware(pilot *contextpilot.Pilot, opts ...Option) ai.ModelMiddleware {
	o := framework.NewWrapOptions(opts)
	turns := o.Calls(pilot)
	return func(next ai.ModelFunc) ai.ModelFunc {
		return func(ctx context.Context, req *ai.ModelRequest, stream ai.ModelStreamCallback) (answer *ai.ModelResponse, err error) {
			name := framework.ConversationFrom(ctx)
			req = stabilised(o.Stabiliser, name, withDocuments(req))
			call := turns.Begin(name, read(req.Messages))
			heard := false
			if stream != nil {
				inner := stream
				stream = func(ctx context.Context, piece *ai.ModelResponseChunk) error {
					heard = true // even if it breaks off: the prompt was computed and is in the engine's cache
					return inner(ctx, piece)
				}
			}
			defer func() { call.End(outcome(answer, heard)) }() // also when next panics
			if len(call.Replacements) > 0 {
				out := *req
				out.Messages = framework.Replace(req.Messages, call.Replacements, visitedMessage)
				req = &out
			}
			return next(ctx, req, stream)
		}
	}
}

func outcome(answer *ai.ModelResponse, heard bool) contextpilot.Event {
	if answer == nil || answer.Usage == nil {
		return framework.Outcome(heard || answer != nil, 0, 0)
	}
	return framework.Outcome(true, answer.Usage.CachedContentTokens, answer.Usage.OutputTokens)
}

// withDocuments puts the request's documents in front of the last user message, if they are a retriever's of ours. Genkit
// itself would put them behind the question, which no two prompts share.
func withDocuments(req *ai.ModelRequest) *ai.ModelRequest {
	at := lastUser(req.Messages)
	if at < 0 || len(req.Docs) == 0 || slices.ContainsFunc(req.Docs, func(d *ai.Document) bool { return d.Metadata[KeyLabel] == nil }) {
		return req
	}
	if slices.ContainsFunc(req.Messages[at].Content, func(p *ai.Part) bool { return p.Metadata["purpose"] == "context" }) {
		return req
	}
	docs := make([]string, len(req.Docs))
	for i, d := range req.Docs {
		text, ok := textOf(d)
		if !ok {
			return req
		}
		docs[i] = text
	}
	part := ai.NewTextPart(strings.Join(docs, "\n\n") + "\n\n")
	part.Metadata = map[string]any{"purpose": "context"} // by which Genkit knows that the documents are in the message
	out, message := *req, *req.Messages[at]
	message.Content = slices.Insert(slices.Clone(message.Content), 0, part)
	out.Messages, out.Docs = slices.Clone(req.Messages), nil
	out.Messages[at] = &message
	return &out
}

func lastUser(messages []*ai.Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == ai.RoleUser {
			return i
		}
	}
	return -1
}

// read returns the messages as they are looked at.
func read(messages []*ai.Message) []framework.Message {
	out := make([]framework.Message, len(messages))
	for i, msg := range messages {
		m := &out[i]
		m.Role = framework.RoleNamed(string(msg.Role))
		for _, part := range msg.Content {
			visited(part, conversation.Text{}, m.Note)
			switch {
			case part.IsText():
			case part.IsToolRequest():
				m.Calls = append(m.Calls, conversation.Call{ID: part.ToolRequest.Ref, Tool: part.ToolRequest.Name})
				m.Other = append(m.Other, part.ToolRequest.Input)
			case !part.IsToolResponse():
				m.Other = append(m.Other, part)
			case len(part.ToolResponse.Content) > 0:
				m.Other = append(m.Other, part.ToolResponse.Content)
			}
		}
	}
	return out
}

// visitedMessage calls visit for each text of a message, and returns a copy with what that returns.
func visitedMessage(message *ai.Message, visit func(conversation.Text) string) *ai.Message {
	out := *message
	out.Content = make([]*ai.Part, len(message.Content))
	for i, part := range message.Content {
		out.Content[i] = visited(part, conversation.Text{}, visit)
	}
	return &out
}

// visited calls visit for each text of a part, and returns the part with what that returns, copied if it is another one. like is
// the result of a tool whose part it is.
func visited(part *ai.Part, like conversation.Text, visit func(conversation.Text) string) *ai.Part {
	out := *part
	switch {
	case part.IsText():
		like.Value = part.Text
		if out.Text = visit(like); out.Text == part.Text {
			return part
		}
	case part.IsToolResponse():
		result := *part.ToolResponse
		like = conversation.Text{Role: conversation.Tool, Call: result.Ref, Tool: result.Name}
		var changed bool
		result.Output, changed = framework.Output(result.Output, like, visit)
		for i, inner := range result.Content {
			if with := visited(inner, like, visit); with != inner {
				if &result.Content[0] == &part.ToolResponse.Content[0] {
					result.Content = slices.Clone(result.Content)
				}
				result.Content[i], changed = with, true
			}
		}
		if !changed {
			return part
		}
		out.ToolResponse = &result
	default:
		return part
	}
	out.Metadata = maps.Clone(part.Metadata)
	return &out
}
