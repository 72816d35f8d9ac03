package langchain

import (
	"context"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
)

// model is inner behind a pilot.
type model struct {
	settings
	inner llms.Model
	turns *framework.Turns
}

// reasoningModel is a model whose inner model says whether it reasons; only it has the method, so that callers who ask
// for the method get inner's answer.
type reasoningModel struct {
	*model
	supports func() bool
}

var (
	_ llms.Model          = (*model)(nil)
	_ llms.ReasoningModel = reasoningModel{}
)

// Wrap returns a model that calls inner and keeps the pilot informed; see the package's documentation. Its
// messages and options reach inner unchanged but for the text of planned blocks and the results of tools. It is safe for concurrent use if inner
// is, and implements [llms.ReasoningModel] if inner does.
func Wrap(pilot *contextpilot.Pilot, inner llms.Model, opts ...Option) llms.Model {
	s := newSettings(opts)
	m := &model{settings: s, inner: inner, turns: framework.NewTurns(pilot, framework.Options{
		Scope: s.scope, NoHint: s.noHint, Cite: s.cited != nil || s.recite != nil, ToolResults: s.toolResults,
	})}
	if r, ok := inner.(interface{ SupportsReasoning() bool }); ok {
		return reasoningModel{m, r.SupportsReasoning}
	}
	return m
}

// SupportsReasoning returns inner's answer.
func (m reasoningModel) SupportsReasoning() bool { return m.supports() }

// Call sends a single prompt.
func (m *model) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent calls inner, with the request's plan worked into the messages if there is one.
func (m *model) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (response *llms.ContentResponse, err error) {
	call := m.turns.Begin(framework.ConversationFrom(ctx), read(messages))
	messages = replaced(messages, call.Replacements)
	if !call.Planned {
		return m.inner.GenerateContent(ctx, messages, options...)
	}
	m.plans(call.Plan)
	ctx = m.withID(withRequestID(withBlocks(ctx, &call.Plan), call.Plan.RequestID), call.Plan.RequestID)
	var w watch
	r := m.reader(ctx, call.Sources)
	options = w.options(r.options(options))
	returned := false
	defer func() { // also when inner panics: nobody else would take the request back
		call.End(outcome(response, err, returned, w.streamed.Load()))
	}()
	response, err = m.inner.GenerateContent(ctx, messages, options...)
	returned = true
	return r.finish(response, err)
}
