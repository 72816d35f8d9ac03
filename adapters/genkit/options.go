package genkit

import (
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/stabilise"
)

// Option changes what [Retriever] and [Middleware] do.
type Option func(*framework.WrapOptions)

// WithScope says which engine's cache the prompts go to; give both wrappers the same. The zero Scope is the default.
func WithScope(scope contextpilot.Scope) Option {
	return func(o *framework.WrapOptions) { o.Scope = scope }
}

// WithBudget bounds the tokens of a request's documents; what is over it is left out, least relevant first, and found
// under [KeyLeftOut]. 0, the default: no bound. [Middleware] does not look at it.
func WithBudget(tokens int) Option { return func(o *framework.WrapOptions) { o.Budget = tokens } }

// WithoutHint has [Middleware] leave out the line that states the documents' order of relevance. [Retriever] does not look at it.
func WithoutHint() Option { return func(o *framework.WrapOptions) { o.NoHint = true } }

// WithToolResults puts notes in place of what a tool returns again in a conversation: a whole result, the documents of one, rows of
// lines. So an agent that reads a file three times sends it once. What is replaced follows from the messages of the call alone, and
// the caller's are not changed. Off by default: how well models answer with such notes was not measured; what has their form
// in a result is fenced in any case. [Retriever] does not look at it.
func WithToolResults() Option { return func(o *framework.WrapOptions) { o.ToolResults = true } }

// WithStabiliser keeps the beginnings of prompts as they were: the order of tools, the members of their schemas, lines with the time,
// memories; see [stabilise.Config]. What leaves the system message becomes a note in a user's message, or a system message of its own with
// [stabilise.PlaceSystem], for models that take these behind others. Name the conversation in the context, see
// [framework.WithConversation]. [Retriever] does not look at it.
func WithStabiliser(s *stabilise.Stabiliser) Option {
	return func(o *framework.WrapOptions) { o.Stabiliser = s }
}

// WithoutHold keeps a retriever's plans away from [Middleware], for a retriever whose documents go to a model without the
// middleware while another model of the same pilot has it: a held plan that no model claims counts as not sent, see
// [framework.Offers]. [Middleware] does not look at it.
func WithoutHold() Option { return func(o *framework.WrapOptions) { o.NoHold = true } }
