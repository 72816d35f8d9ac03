package adk

import (
	"context"
	"iter"
	"slices"

	"google.golang.org/adk/model"
	"google.golang.org/genai"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/adapter"
)

// ModelOptions configure [Model].
type ModelOptions struct {
	// Scope is the engine's cache that the prompts go to; the zero Scope is the default.
	Scope contextpilot.Scope
	// NoHint leaves out the line that states the documents' order of relevance.
	NoHint bool
}

type llm struct {
	model.LLM
	turns *adapter.Turns
}

// Model returns a model that calls inner and keeps the pilot informed; see the package's documentation. Keep one for all
// calls: it remembers what it sent in earlier turns. It is safe for concurrent use if inner is. The caller's request is not
// changed.
func Model(pilot *contextpilot.Pilot, inner model.LLM, o ModelOptions) model.LLM {
	return &llm{inner, adapter.NewTurns(pilot, adapter.Options{Scope: &o.Scope, NoHint: o.NoHint})}
}

// GenerateContent calls inner, with the request's plan worked into the contents if there is one. The pilot is told how it
// went when the sequence ends, or nobody reads on.
func (m *llm) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		call := m.turns.Begin(contextpilot.ConversationFrom(ctx), texts(req.Contents))
		heard := false
		var usage *genai.GenerateContentResponseUsageMetadata
		defer func() { call.End(outcome(heard, usage)) }() // also when inner panics
		for answer, err := range m.LLM.GenerateContent(ctx, replaced(req, call.Replacements), stream) {
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
		return adapter.Outcome(heard, 0, 0)
	}
	return adapter.Outcome(heard, int(u.CachedContentTokenCount), int(u.CandidatesTokenCount))
}

// texts returns the contents' roles and texts; parts that are no text have an empty one.
func texts(contents []*genai.Content) []adapter.Message {
	out := make([]adapter.Message, len(contents))
	for i, c := range contents {
		if c == nil {
			continue
		}
		if c.Role == genai.RoleUser && !slices.ContainsFunc(c.Parts, func(p *genai.Part) bool { return p.FunctionResponse != nil }) {
			out[i].Role = adapter.User
		}
		for _, part := range c.Parts {
			out[i].Texts = append(out[i].Texts, part.Text)
		}
	}
	return out
}

// replaced returns the request with other texts, copied as far as they are other ones.
func replaced(req *model.LLMRequest, with []adapter.Replacement) *model.LLMRequest {
	if len(with) == 0 {
		return req
	}
	out := *req
	out.Contents = slices.Clone(req.Contents)
	for _, r := range with {
		content := *out.Contents[r.Message]
		content.Parts = slices.Clone(content.Parts)
		part := *content.Parts[r.Text]
		part.Text = r.With
		content.Parts[r.Text] = &part
		out.Contents[r.Message] = &content
	}
	return &out
}
