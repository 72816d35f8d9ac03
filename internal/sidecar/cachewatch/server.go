package cachewatch

import (
	"context"
	"errors"
	"net/http"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/sglang"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

// Engine is an engine whose cache events are followed.
type Engine struct {
	// Name stands in logs and metrics, and is different for each engine.
	Name string
	// Kind is vllm or sglang.
	Kind string
	// URL is the engine's own address; empty: [Options.BaseURL].
	URL string
	// APIKey is sent to the engine; empty: none.
	APIKey string
	// Models are those that it serves; none: all.
	Models []string
	// Sources are where it publishes; none: the engine is asked.
	Sources []kvevents.Source
	// Topic is what the topics of its messages begin with, if the engine is asked for its sources; empty: as it says.
	Topic string
	// BlockSize is the number of tokens of a block; 0: events report it.
	BlockSize int
	// PromptTokens is how tokens of prompts are learned: "answer" (from the answer), "tokenize" (from the tokenizer), or empty: from
	// the answer where the engine can put them there, otherwise from the tokenizer.
	PromptTokens string
}

// features are what was found out about a server. The zero value means that nothing was.
type features struct {
	version  string
	cacheOff bool
	answer   bool // puts the prompt's tokens into answers, streams included
	tokenize bool // has a tokenizer
	adapters []string
}

// server is what is asked of an engine beside its events.
type server struct {
	detect func(context.Context) (features, error)
	// sources are where it publishes, as it reports.
	sources  func(context.Context) ([]published, error)
	tokenize func(ctx context.Context, body []byte) ([]uint32, error)
	// started is when its process began, in seconds.
	started func(context.Context) (float64, error)
}

// published is where an engine publishes.
type published struct {
	kvevents.Source
	mayDial bool // it names a host: the engine may connect there instead of listening
}

// newServer returns the server of an engine. SGLang gives tokens with an answer only if that is not streamed, so its tokenizer is
// asked.
func newServer(cfg Engine, client *http.Client) (server, error) {
	c := vllm.Config{Server: openai.Config{BaseURL: cfg.URL, APIKey: cfg.APIKey, HTTPClient: client}}
	create, streamsTokens := vllm.New, true
	if cfg.Kind == "sglang" {
		create, streamsTokens = sglang.New, false
	}
	e, err := create(c)
	if err != nil {
		return server{}, err
	}
	return server{
		detect: func(ctx context.Context) (features, error) {
			f, err := e.Detect(ctx)
			return features{
				f.Version, f.PrefixCache.Known && !f.PrefixCache.Has, streamsTokens && f.PromptTokens.Has, f.Tokenize.Has, f.Adapters,
			}, err
		},
		sources: func(ctx context.Context) ([]published, error) {
			list, err := e.EventSources(ctx)
			out := make([]published, len(list))
			for i, s := range list {
				out[i] = published{kvevents.Source{Endpoint: s.Endpoint, Replay: s.Replay, Topic: s.Topic, Rank: s.Rank}, s.MayDial}
			}
			return out, err
		},
		tokenize: e.TokenizeRequest,
		started: func(ctx context.Context) (float64, error) {
			m, err := e.Metrics(ctx)
			if err == nil && m.Started.IsZero() {
				err = errNotStarted
			}
			return float64(m.Started.UnixMilli()) / 1e3, err
		},
	}, nil
}

// errNotStarted: the server does not report when its process began.
var errNotStarted = errors.New("the server does not report when it was started")
