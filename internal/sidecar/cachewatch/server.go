package cachewatch

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/sglang"
	"github.com/ragpilot/ragpilot/engines/vllm"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// features are what was found out about a server. The zero value is that nothing was.
type features struct {
	version  string
	cacheOff bool
	answer   bool // puts the prompt's tokens into answers, streams included
	tokenize bool // has a tokenizer to ask
	adapters map[string]bool
}

// server is what is asked of an engine beside its events.
type server interface {
	detect(ctx context.Context) (features, error)
	// sources are where it publishes, by its own word.
	sources(ctx context.Context) ([]published, error)
	tokenize(ctx context.Context, body []byte) ([]uint32, error)
	// started is when its process began, in any unit.
	started(ctx context.Context) (float64, error)
}

// published is where an engine publishes.
type published struct {
	kvevents.Source
	mayDial bool // it names a host: the engine may connect there instead of listening
}

func newServer(cfg settings.Engine, client *http.Client) (server, error) {
	c := openai.Config{BaseURL: cfg.URL, APIKey: cfg.APIKey.Reveal(), HTTPClient: client}
	if cfg.Kind == "sglang" {
		e, err := sglang.New(sglang.Config{Server: c})
		return sglangServer{e}, err
	}
	e, err := vllm.New(vllm.Config{Server: c})
	return vllmServer{e}, err
}

// errNotStarted: the server does not say when its process began.
var errNotStarted = errors.New("the server does not tell when it was started")

func seconds(t time.Time, err error) (float64, error) {
	if err == nil && t.IsZero() {
		err = errNotStarted
	}
	return float64(t.UnixMilli()) / 1e3, err
}

func set(list []string) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, s := range list {
		out[s] = true
	}
	return out
}

type vllmServer struct{ *vllm.Engine }

func (s vllmServer) detect(ctx context.Context) (features, error) {
	f, err := s.Detect(ctx)
	return features{
		version: f.Version, cacheOff: f.PrefixCache.Known && !f.PrefixCache.Has,
		answer: f.PromptTokens.Has, tokenize: f.Tokenize.Has, adapters: set(f.Adapters),
	}, err
}

func (s vllmServer) sources(ctx context.Context) ([]published, error) {
	list, err := s.EventSources(ctx)
	out := make([]published, len(list))
	for i, e := range list {
		out[i] = published{kvevents.Source{Endpoint: e.Endpoint, Replay: e.Replay, Topic: e.Topic, Rank: e.Rank}, e.MayDial}
	}
	return out, err
}

func (s vllmServer) tokenize(ctx context.Context, body []byte) ([]uint32, error) {
	return s.TokenizeRequest(ctx, body)
}

func (s vllmServer) started(ctx context.Context) (float64, error) {
	m, err := s.Metrics(ctx)
	return seconds(m.Started, err)
}

type sglangServer struct{ *sglang.Engine }

// detect: SGLang gives tokens with an answer only if that is not streamed, so its tokenizer is asked.
func (s sglangServer) detect(ctx context.Context) (features, error) {
	f, err := s.Detect(ctx)
	return features{
		version: f.Version, cacheOff: f.PrefixCache.Known && !f.PrefixCache.Has,
		tokenize: f.Tokenize.Has, adapters: set(f.Adapters),
	}, err
}

func (s sglangServer) sources(ctx context.Context) ([]published, error) {
	list, err := s.EventSources(ctx)
	out := make([]published, len(list))
	for i, e := range list {
		out[i] = published{kvevents.Source{Endpoint: e.Endpoint, Replay: e.Replay, Topic: e.Topic, Rank: e.Rank}, e.MayDial}
	}
	return out, err
}

func (s sglangServer) tokenize(ctx context.Context, body []byte) ([]uint32, error) {
	return s.TokenizeRequest(ctx, body)
}

func (s sglangServer) started(ctx context.Context) (float64, error) {
	m, err := s.Metrics(ctx)
	return seconds(m.Started, err)
}
