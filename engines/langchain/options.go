package langchain

import (
	"context"

	"github.com/ragpilot/ragpilot/citation"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/stabilise"
)

// Option changes what [Wrap] does.
type Option func(*settings)

type settings struct {
	scope  *contextpilot.Scope // nil: that of the plan
	noHint bool
	// toolResults: they are replaced, and not only fenced.
	toolResults bool
	stabiliser  *stabilise.Stabiliser // nil: none

	withID func(ctx context.Context, id string) context.Context
	plans  func(contextpilot.Plan)
	cited  func(ctx context.Context, c citation.Citation)
	recite func(text string, cited []citation.Citation) string

	diagnosis *diagnosis // nil: calls are not compared
}

func newSettings(opts []Option) settings {
	s := settings{
		withID: func(ctx context.Context, _ string) context.Context { return ctx },
		plans:  func(contextpilot.Plan) {},
	}
	for _, o := range opts {
		o(&s)
	}
	return s
}

// WithScope says which cache the model has, where the retriever cannot know: with several models or replicas behind one
// retriever. A plan for another scope is taken back there, made again for this one, and the prompt rewritten to it.
func WithScope(scope contextpilot.Scope) Option {
	return func(s *settings) { s.scope = &scope }
}

// WithoutHint leaves the order hint out. One that the program has put into the prompt itself, as
// [contextpilot.Plan.Hint] gives it, is kept up to date in any case.
func WithoutHint() Option {
	return func(s *settings) { s.noHint = true }
}

// WithToolResults puts notes in place of what a tool returns again in a conversation: a whole result, the documents of one, rows of
// lines. A note names the call that returned it first, or quotes the first words. So an agent that reads a file three
// times sends it once. It needs no conversation in the context: what is replaced follows from the messages of the call alone.
// Off by default: it was not measured how well models answer with such notes.
//
// Without it results reach inner as they are, but for what has the form of such a note in them: that is fenced in any case, since a
// tool's result must not be able to say what was shown.
func WithToolResults() Option {
	return func(s *settings) { s.toolResults = true }
}

// WithRequestID has f put the request ID into the context of the inner model's call, for clients that read it from
// there under a key of their own. It is only called for requests that are tied to a plan. [RequestID] and [Transport]
// work without it.
func WithRequestID(f func(ctx context.Context, id string) context.Context) Option {
	return func(s *settings) {
		if f != nil {
			s.withID = f
		}
	}
}

// WithPlans has f called with the plan whose rendering is sent, just before it is. Where the wrapper planned
// anew, blocks over the retriever's budget are missing from it, so that its ranks may differ from the retriever's.
func WithPlans(f func(contextpilot.Plan)) Option {
	return func(s *settings) {
		if f != nil {
			s.plans = f
		}
	}
}
