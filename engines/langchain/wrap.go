package langchain

import (
	"context"
	"sync/atomic"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
)

// model is inner behind a pilot.
type model struct {
	settings
	inner llms.Model
	turns *framework.Calls
}

// reasoning is a model that says whether the one behind it reasons. Only it has the method, so that callers who ask for the
// method get the answer of the model behind.
type reasoning struct {
	llms.Model
	behind interface{ SupportsReasoning() bool }
}

// SupportsReasoning returns the answer of the model behind.
func (m reasoning) SupportsReasoning() bool { return m.behind.SupportsReasoning() }

// inFrontOf returns the model, with the method of reasoning models if the one behind it has it.
func inFrontOf(behind, m llms.Model) llms.Model {
	if r, ok := behind.(interface{ SupportsReasoning() bool }); ok {
		return reasoning{m, r}
	}
	return m
}

var _ llms.ReasoningModel = reasoning{}

// Wrap returns a model that calls inner and keeps the pilot informed; see the package's documentation. Its
// messages and options reach inner unchanged but for the text of planned blocks and the results of tools. It is safe for
// concurrent use if inner is, and implements [llms.ReasoningModel] if inner does.
func Wrap(pilot *contextpilot.Pilot, inner llms.Model, opts ...Option) llms.Model {
	s := newSettings(opts)
	return inFrontOf(inner, &model{settings: s, inner: inner, turns: framework.NewCalls(pilot, framework.Options{
		Scope: s.scope, NoHint: s.noHint, Cite: s.cited != nil || s.recite != nil, ToolResults: s.toolResults,
	})})
}

// Call sends a single prompt.
func (m *model) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent calls inner, with the request's plan worked into the messages if there is one.
func (m *model) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (response *llms.ContentResponse, err error) {
	name := framework.ConversationFrom(ctx)
	messages, options = m.stabilised(name, messages, options)
	call := m.turns.Begin(name, read(messages))
	messages = framework.Replace(messages, call.Replacements, visitedMessage)
	if !call.Planned {
		response, err = m.inner.GenerateContent(ctx, messages, options...)
		if err == nil {
			m.diagnosis.answered(ctx, messages, options, response)
		}
		return response, err
	}
	m.plans(call.Plan)
	ctx = m.withID(withRequestID(withBlocks(ctx, &call.Plan), call.Plan.RequestID), call.Plan.RequestID)
	var streamed atomic.Bool
	r := m.reader(ctx, call.Sources)
	options = seeing(r.options(options), func(chunk []byte, _ bool) []byte {
		streamed.Store(true)
		return chunk
	})
	returned := false
	defer func() { // also when inner panics: otherwise the request would not be taken back
		call.End(outcome(response, err, returned, streamed.Load()))
	}()
	response, err = m.inner.GenerateContent(ctx, messages, options...)
	if returned = true; err == nil {
		m.diagnosis.answered(ctx, messages, options, response)
	}
	return r.finish(response, err)
}
