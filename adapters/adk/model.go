package adk

import (
	"context"
	"iter"
	"slices"

	"google.golang.org/adk/model"
	"google.golang.org/genai"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/stabilise"
)

// ModelOptions configure [Model].
type ModelOptions struct {
	// Scope is the engine's cache that the prompts go to; the zero Scope is the default.
	Scope contextpilot.Scope
	// NoHint leaves out the line that states the documents' order of relevance.
	NoHint bool
	// ToolResults replaces repeated text in tool results by notes: a whole result, the documents of one, rows of lines. So an agent
	// that reads a file three times sends it once. The replacements depend on the contents of the request alone. Off by default,
	// because it was not measured how well models answer with such notes. Text with the form of a note in a result is always fenced.
	ToolResults bool
	// Stabiliser keeps the beginnings of prompts as they were: the order of tools, the members of their schemas, lines with the time,
	// memories; see [stabilise.Config]. What leaves the system instruction becomes a note in a user's content. Name the conversation in the
	// context, see [framework.WithConversation]. Nil: none.
	Stabiliser *stabilise.Stabiliser
}

type llm struct {
	model.LLM
	turns      *framework.Calls
	stabiliser *stabilise.Stabiliser
}

// Model returns a model that calls inner and keeps the pilot informed; see the package's documentation. Keep one for all
// calls: it remembers what it sent in earlier turns. It is safe for concurrent use if inner is. The caller's request is not
// changed.
func Model(pilot *contextpilot.Pilot, inner model.LLM, o ModelOptions) model.LLM {
	calls := framework.WrapOptions{Scope: o.Scope, NoHint: o.NoHint, ToolResults: o.ToolResults}.Calls(pilot)
	return &llm{inner, calls, o.Stabiliser}
}

// GenerateContent calls inner, with the request's plan worked into the contents if there is one. The outcome is
// reported to the pilot when the sequence ends, or when its reader stops.
func (m *llm) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		name := framework.ConversationFrom(ctx)
		req := stabilised(m.stabiliser, name, req)
		call := m.turns.Begin(name, read(req))
		heard := false
		var usage *genai.GenerateContentResponseUsageMetadata
		defer func() { call.End(outcome(heard, usage)) }() // also when inner panics
		for answer, err := range m.LLM.GenerateContent(ctx, sent(req, call.Replacements), stream) {
			if answer != nil && answer.ErrorCode == "" {
				heard = true
				if answer.UsageMetadata != nil {
					usage = answer.UsageMetadata
				}
			}
			if !yield(answer, err) {
				return
			}
		}
	}
}

func outcome(heard bool, u *genai.GenerateContentResponseUsageMetadata) contextpilot.Event {
	if u == nil {
		return framework.Outcome(heard, 0, 0)
	}
	return framework.Outcome(heard, int(u.CachedContentTokenCount), int(u.CandidatesTokenCount))
}

// head is the number of messages that a request has in front of its contents: the system's.
func head(req *model.LLMRequest) int {
	if req.Config == nil || req.Config.SystemInstruction == nil {
		return 0
	}
	return 1
}

// contents returns the system's content, if there is one, and a request's own.
func contents(req *model.LLMRequest) []*genai.Content {
	if head(req) == 0 {
		return req.Contents
	}
	return slices.Insert(slices.Clone(req.Contents), 0, req.Config.SystemInstruction)
}

// read returns a request's contents as they are looked at, the system's first.
func read(req *model.LLMRequest) []framework.Message { return readContents(contents(req), head(req)) }

// readContents returns contents as they are looked at. The first head of them are the system's.
func readContents(contents []*genai.Content, head int) []framework.Message {
	out := make([]framework.Message, len(contents))
	for i, c := range contents {
		m := &out[i]
		switch {
		case c == nil:
			continue
		case i < head:
			m.Role = conversation.System
		case slices.ContainsFunc(c.Parts, isResult):
			m.Role = conversation.Tool
		case c.Role == genai.RoleUser:
			m.Role = conversation.User
		default:
			m.Role = conversation.Assistant
		}
		for _, part := range c.Parts {
			visited(part, func(text conversation.Text) string {
				if m.Role == conversation.Tool && text.Role != conversation.Tool {
					text.Role = conversation.User // it stands beside a result
				}
				return m.Note(text)
			})
			switch {
			case part == nil:
			case part.FunctionCall != nil:
				m.Calls = append(m.Calls, conversation.Call{ID: part.FunctionCall.ID, Tool: part.FunctionCall.Name})
				m.Other = append(m.Other, part.FunctionCall.Args)
			case !isResult(part) && !isText(part):
				m.Other = append(m.Other, part)
			case isResult(part) && len(part.FunctionResponse.Parts) > 0:
				m.Other = append(m.Other, part.FunctionResponse.Parts)
			}
		}
	}
	return out
}

func isResult(p *genai.Part) bool { return p != nil && p.FunctionResponse != nil }

// isText reports whether a part is a text. Thoughts are not.
func isText(p *genai.Part) bool { return p != nil && p.Text != "" && !p.Thought }

// sent returns the request with other texts. Nothing of the system's is replaced.
func sent(req *model.LLMRequest, with []framework.Replacement) *model.LLMRequest {
	if len(with) == 0 {
		return req
	}
	out := *req
	out.Contents = framework.Replace(contents(req), with, visitedContent)[head(req):]
	return &out
}

// visitedContent calls visit for each text of a content, and returns a copy with what that returns.
func visitedContent(c *genai.Content, visit func(conversation.Text) string) *genai.Content {
	content := *c
	content.Parts = slices.Clone(content.Parts)
	for i, part := range content.Parts {
		content.Parts[i] = visited(part, visit)
	}
	return &content
}

// visited calls visit for each text of a part, and returns the part with what that returns, copied if it is another one.
func visited(part *genai.Part, visit func(conversation.Text) string) *genai.Part {
	switch {
	case isResult(part):
		result := *part.FunctionResponse
		like := conversation.Text{Call: result.ID, Tool: result.Name}
		if result.Response == nil {
			return part
		}
		response, changed := framework.Output(result.Response, like, visit)
		if !changed {
			return part
		}
		result.Response, _ = response.(map[string]any)
		out := *part
		out.FunctionResponse = &result
		return &out
	case isText(part):
		if with := visit(conversation.Text{Value: part.Text}); with != part.Text {
			out := *part
			out.Text = with
			return &out
		}
	}
	return part
}
