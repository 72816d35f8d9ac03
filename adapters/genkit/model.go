package genkit

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/firebase/genkit/go/ai"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/adapter"
)

// Middleware returns a middleware for models that keeps the pilot informed; see the package's documentation. Keep one for
// all calls of a model: it remembers what it sent in earlier turns. It is safe for concurrent use.
func Middleware(pilot *contextpilot.Pilot, opts ...Option) ai.ModelMiddleware {
	s := newSettings(opts)
	turns := adapter.NewTurns(pilot, adapter.Options{Scope: &s.scope, NoHint: s.noHint})
	return func(next ai.ModelFunc) ai.ModelFunc {
		return func(ctx context.Context, req *ai.ModelRequest, stream ai.ModelStreamCallback) (answer *ai.ModelResponse, err error) {
			req = withDocuments(req)
			call := turns.Begin(contextpilot.ConversationFrom(ctx), texts(req.Messages))
			heard := false
			if stream != nil {
				inner := stream
				stream = func(ctx context.Context, piece *ai.ModelResponseChunk) error {
					heard = true // even if it breaks off: the prompt was computed and is in the engine's cache
					return inner(ctx, piece)
				}
			}
			defer func() { call.End(outcome(answer, heard)) }() // also when next panics
			return next(ctx, replaced(req, call.Replacements), stream)
		}
	}
}

func outcome(answer *ai.ModelResponse, heard bool) contextpilot.Event {
	if answer == nil || answer.Usage == nil {
		return adapter.Outcome(heard || answer != nil, 0, 0)
	}
	return adapter.Outcome(true, answer.Usage.CachedContentTokens, answer.Usage.OutputTokens)
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

// texts returns the messages' roles and texts; parts that are no text have an empty one.
func texts(messages []*ai.Message) []adapter.Message {
	out := make([]adapter.Message, len(messages))
	for i, m := range messages {
		switch m.Role {
		case ai.RoleSystem:
			out[i].Role = adapter.System
		case ai.RoleUser:
			out[i].Role = adapter.User
		case ai.RoleTool:
			out[i].Role = adapter.Tool
		}
		for _, part := range m.Content {
			text := ""
			if part.IsText() {
				text = part.Text
			}
			out[i].Texts = append(out[i].Texts, text)
		}
	}
	return out
}

// replaced returns the request with other texts, copied as far as they are other ones.
func replaced(req *ai.ModelRequest, with []adapter.Replacement) *ai.ModelRequest {
	if len(with) == 0 {
		return req
	}
	out := *req
	out.Messages = slices.Clone(req.Messages)
	for _, r := range with {
		message := *out.Messages[r.Message]
		message.Content = slices.Clone(message.Content)
		part := *message.Content[r.Text]
		part.Text, part.Metadata = r.With, maps.Clone(part.Metadata)
		message.Content[r.Text] = &part
		out.Messages[r.Message] = &message
	}
	return &out
}
