package langchain

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/framework"
)

// seeing returns the caller's options with see in front of the streaming functions, if the caller has any: they get what it
// returns of each chunk. An empty chunk counts, too: it came from the engine.
func seeing(options []llms.CallOption, see func(chunk []byte, reasoning bool) []byte) []llms.CallOption {
	o := applied(options, llms.CallOptions{})
	if o.StreamingFunc == nil && o.StreamingReasoningFunc == nil {
		return options
	}
	return append(slices.Clip(options), func(o *llms.CallOptions) {
		if f := o.StreamingFunc; f != nil {
			o.StreamingFunc = func(ctx context.Context, chunk []byte) error { return f(ctx, see(chunk, false)) }
		}
		if f := o.StreamingReasoningFunc; f != nil {
			o.StreamingReasoningFunc = func(ctx context.Context, thought, chunk []byte) error {
				return f(ctx, thought, see(chunk, true))
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
	heard := returned && err == nil || streamed || errors.Is(err, engines.ErrInterrupted)
	var info map[string]any
	if response != nil {
		if i := slices.IndexFunc(response.Choices, func(c *llms.ContentChoice) bool { return c != nil }); i >= 0 {
			info = response.Choices[i].GenerationInfo // clients give each choice the usage of the whole request
		}
	}
	return framework.Outcome(heard, count(info, cachedKeys()), count(info, outputKeys()))
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
