package doctor

import (
	"context"

	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

// lookSelfHosted asks a vLLM or an SGLang server; create is New of its package, reportFlag switches cached tokens on.
func lookSelfHosted(
	ctx context.Context, create func(vllm.Config) (*vllm.Engine, error), server openai.Config, reportFlag string,
) (facts, error) {
	engine, err := create(vllm.Config{Server: server})
	if err != nil {
		return facts{}, err
	}
	found, err := engine.Detect(ctx)
	if err != nil {
		return facts{}, err
	}
	f := facts{
		version: found.Version, window: found.Window, block: found.BlockSize, capacity: max(found.MaxTokens, found.Blocks*found.BlockSize),
		cacheOn: found.PrefixCache.Has, cacheOff: found.PrefixCache.Known && !found.PrefixCache.Has, started: found.Started,
		reportFlag: reportFlag, takesID: true, publishes: true,
		count: func(ctx context.Context, text string) (int, error) {
			tokens, err := engine.Tokenize(ctx, text)
			return len(tokens), err
		},
		template: engine.TokenizeChat, prompt: engine.TokenizeRequest,
		counters: func(ctx context.Context) (counters, error) {
			m, err := engine.Metrics(ctx)
			return counters{max(m.Queries, m.Prompt), m.Hits}, err
		},
	}
	if !found.Tokenize.Has {
		f.count, f.template, f.prompt = nil, nil, nil
	}
	f.salt, f.hasSalt = "cache_salt", found.Salt.Has
	if !f.hasSalt && found.ExtraKey.Has {
		f.salt, f.hasSalt = "extra_key", true
	}
	list, err := engine.EventSources(ctx)
	f.sourcesErr = err
	for _, s := range list {
		f.sources = append(f.sources, source{rank: s.Rank, endpoint: s.Endpoint, replay: s.Replay, topic: s.Topic, mayDial: s.MayDial})
	}
	return f, nil
}
