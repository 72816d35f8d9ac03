package langchain

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// watch notes whether a piece of the answer was streamed, an empty one included: it came from the engine.
type watch struct{ streamed atomic.Bool }

// options returns the caller's options with an option behind them that listens to the streaming functions, if the
// caller has any.
func (w *watch) options(options []llms.CallOption) []llms.CallOption {
	o := applied(options, llms.CallOptions{})
	if o.StreamingFunc == nil && o.StreamingReasoningFunc == nil {
		return options
	}
	return append(slices.Clip(options), func(o *llms.CallOptions) {
		if f := o.StreamingFunc; f != nil {
			o.StreamingFunc = func(ctx context.Context, chunk []byte) error {
				w.streamed.Store(true)
				return f(ctx, chunk)
			}
		}
		if f := o.StreamingReasoningFunc; f != nil {
			o.StreamingReasoningFunc = func(ctx context.Context, reasoning, chunk []byte) error {
				w.streamed.Store(true)
				return f(ctx, reasoning, chunk)
			}
		}
	})
}

// applied returns what the options set, beginning with o.
func applied(options []llms.CallOption, o llms.CallOptions) llms.CallOptions {
	for _, set := range options {
		if set != nil {
			set(&o)
		}
	}
	return o
}

// outcome says what became of a request. One that failed before anything was heard of the engine is Gone; one that
// broke off later has been computed and is in the engine's cache.
func outcome(response *llms.ContentResponse, err error, returned, streamed bool) contextpilot.Event {
	failed := !returned || err != nil
	if failed && !streamed && !errors.Is(err, engines.ErrInterrupted) {
		return contextpilot.Event{Kind: contextpilot.Gone}
	}
	ev := contextpilot.Event{Kind: contextpilot.Served}
	if response == nil {
		return ev
	}
	for _, choice := range response.Choices {
		if choice != nil { // clients give each choice the usage of the whole request
			ev.Tokens = count(choice.GenerationInfo, cachedKeys())
			ev.CachedKnown = ev.Tokens > 0 // some say 0 where the engine said nothing
			ev.Output = count(choice.GenerationInfo, outputKeys())
			break
		}
	}
	return ev
}

// cachedKeys are the names under which clients of langchaingo v0.1.14 report prompt tokens read from a cache: openai,
// googleai and ollama, anthropic.
func cachedKeys() []string {
	return []string{"PromptCachedTokens", "CachedTokens", "CacheReadInputTokens"}
}

// outputKeys are the names for generated tokens: openai, googleai, ollama and others; anthropic; bedrock.
func outputKeys() []string { return []string{"CompletionTokens", "OutputTokens", "output_tokens"} }

// count returns the first number that info holds under one of the keys, or 0. Clients use different types.
func count(info map[string]any, keys []string) int {
	for _, k := range keys {
		switch v := reflect.ValueOf(info[k]); {
		case !v.IsValid():
		case v.CanInt():
			return int(max(v.Int(), 0))
		case v.CanUint():
			return int(v.Uint())
		case v.CanFloat():
			return int(max(v.Float(), 0))
		}
	}
	return 0
}
