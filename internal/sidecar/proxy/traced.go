package proxy

import (
	"strings"
	"unicode"

	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
)

// enter ends the stage before and begins the next one. A stage that is broken off by a panic is not seen.
func (x *exchange) enter(stage string) {
	x.leave("")
	_, x.stage = x.p.opt.Tracer.Start(x.r.Context(), stage)
}

// leave ends the stage, and says what was found or done in it; problem is what made it fail, "" if nothing did.
func (x *exchange) leave(problem string) {
	span := x.stage
	x.stage = tracing.Span{}
	if !span.Recorded() {
		return
	}
	if problem != "" {
		span.Fail(problem)
	}
	span.Int(tracing.RequestBytes, len(x.send))
	if x.result.Messages > 0 { // planned
		span.Int(tracing.Messages, x.result.Messages)
		span.Int(tracing.Documents, x.turn.Found)
		span.Int(tracing.References, x.result.Deduplicated)
		span.Int(tracing.Blocks, x.result.Blocks.Total)
		span.Int(tracing.BlocksReplaced, x.turn.Replaced)
	}
	span.End()
}

// describe says in the span of the whole request what came out of it.
func (p *Proxy) describe(span tracing.Span, r *Report, output int) {
	if !span.Recorded() {
		return
	}
	span.Text(tracing.Group, group(r))
	span.Text(tracing.Session, p.shown(r.Session))
	span.Text(tracing.Model, printable(r.Model))
	span.Int(tracing.Documents, r.Documents)
	span.Int(tracing.References, r.LeftOut)
	span.Int(tracing.BlocksReplaced, r.Replaced)
	span.Int(tracing.CharactersSaved, r.CharsSaved)
	span.Known(tracing.PredictedTokens, r.Predicted)
	span.Known(tracing.PromptTokens, r.Prompt)
	span.Known(tracing.CachedTokens, r.Cached)
	span.Known(tracing.OutputTokens, output)
}

func group(r *Report) string {
	switch {
	case r.Shadow: // what was done would have been done
		return "shadow"
	case r.HeldOut:
		return "held-out"
	case r.Planned:
		return "planned"
	default:
		return "plain"
	}
}

// printable returns what may be a model's name: a body may hold anything in its place.
func printable(model string) string {
	if len(model) > 128 || strings.ContainsFunc(model, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }) {
		return ""
	}
	return strings.Clone(model) // not all of the body
}
