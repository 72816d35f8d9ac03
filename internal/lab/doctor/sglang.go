package doctor

import (
	"context"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/sglang"
)

func lookSGLang(ctx context.Context, server openai.Config) (facts, error) {
	engine, err := sglang.New(sglang.Config{Server: server})
	if err != nil {
		return facts{}, err
	}
	found, err := engine.Detect(ctx)
	if err != nil {
		return facts{}, err
	}
	f := facts{
		version: found.Version, window: found.Window, block: found.BlockSize, capacity: found.MaxTokens,
		cacheOff: found.PrefixCache.Known && !found.PrefixCache.Has, started: found.Started,
		reportFlag: "--enable-cache-report", takesID: true, publishes: true,
		count: func(ctx context.Context, text string) (int, error) {
			tokens, err := engine.Tokenize(ctx, text)
			return len(tokens), err
		},
		template: func(ctx context.Context, messages []engines.Message) ([]uint32, error) {
			return engine.TokenizeChat(ctx, messages)
		},
		hits: func(ctx context.Context) (int64, error) {
			m, err := engine.Metrics(ctx)
			return m.Cached, err
		},
	}
	if !found.Tokenize.Has {
		f.count, f.template = nil, nil
	}
	var list []sglang.EventSource
	list, f.sourcesErr = engine.EventSources(ctx)
	for _, s := range list {
		f.sources = append(f.sources, source{rank: s.Rank, endpoint: s.Endpoint, replay: s.Replay, topic: s.Topic, mayDial: s.MayDial})
	}
	return f, nil
}
