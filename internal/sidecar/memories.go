package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/ragpilot/ragpilot/embed/byname"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/sidecar/memories"
	"github.com/ragpilot/ragpilot/internal/sidecar/memoryapi"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
	"github.com/ragpilot/ragpilot/internal/sidecar/upstreamerr"
	"github.com/ragpilot/ragpilot/memory"
)

// keptMemories are the stores of all tenants.
type keptMemories struct{ folder *memories.Folder }

// embedderOf opens what the memories are embedded with, one for all tenants.
func embedderOf(m settings.Memory, log *slog.Logger) (*byname.Source, error) {
	source, err := byname.Open(m.Embedding(), byname.Options{Log: log})
	if err != nil {
		return nil, fmt.Errorf("memory.embedder %w", err)
	}
	return source, nil
}

// keepMemories serves Mem0's REST API, if memories are kept: on its own paths, and once more under /mem0, where POST /reset
// and POST /search are not the index's.
func (a *API) keepMemories(cfg settings.Config, o Options, index http.Handler, most bounds) error {
	if cfg.Memory.Dir == "" {
		return nil
	}
	extract, err := extractor(cfg)
	if err != nil {
		return err
	}
	embeds, err := embedderOf(cfg.Memory, o.Log)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, embeds.Close)
	folder, err := memories.Open(cfg.Memory.Dir, memories.Options{
		Extractor: extract, Embedder: embeds.Embedder(), ByWords: cfg.Memory.Embedding().Auto(), Arrived: embeds.Arrived(), Open: most.stores, Indexes: most.indexes, Log: o.Log,
	})
	if err != nil {
		return err
	}
	a.memories = &keptMemories{folder}
	a.closers = append(a.closers, folder.Close)
	api := memoryapi.New(memoryapi.Options{
		Store: func(ctx context.Context, tenant string) (memory.Store, func(), error) {
			if err := embeds.Check(); err != nil {
				return nil, nil, err
			}
			return folder.Use(ctx, tenant)
		},
		Tenant:     func(r *http.Request) string { return tenant.From(r.Context()) },
		Extraction: cfg.Memory.Extract, Index: index, Log: o.Log,
	})
	for _, prefix := range []string{"", "/mem0"} {
		api.Hosted(a.main, prefix)
		api.SelfHosted(a.main, prefix)
	}
	return nil
}

// forget drops a tenant's memories, and reports whether there were any. k may be nil.
func (k *keptMemories) forget(ctx context.Context, tenant string) (known bool, err error) {
	if k == nil {
		return false, nil
	}
	return k.folder.Forget(ctx, tenant)
}

// extractor returns what decides what is remembered.
func extractor(cfg settings.Config) (memory.Extractor, error) {
	switch cfg.Memory.Extract {
	case "", "verbatim":
		return memory.Verbatim{}, nil
	case "everything":
		return memory.Everything{}, nil
	}
	base, err := url.Parse(cfg.InferAPIURL)
	if err != nil {
		return nil, err
	}
	engine, err := openai.New(openai.Config{
		BaseURL: strings.TrimSuffix(base.String(), "/") + "/v1", Model: cfg.Memory.Model, APIKey: cfg.InferAPIKey.Reveal(),
		HTTPClient: &http.Client{Transport: upstreamerr.Transport(proxy.NewTransport(cfg.Timeouts.UpstreamConnect, cfg.Timeouts.UpstreamHeader))},
	})
	if err != nil {
		return nil, err
	}
	if cfg.Memory.Extract == "reconcile" {
		return memory.Reconcile(asked{engine}), nil
	}
	return memory.AddOnly(asked{engine}), nil
}

// asked is an engine that answers an extractor's questions.
type asked struct{ engine engines.Engine }

// Complete implements memory.Model.
func (m asked) Complete(ctx context.Context, system, user string) (string, error) {
	const longest = 4096 // tokens of facts
	answer, err := m.engine.Generate(ctx, engines.Request{
		MaxTokens: longest, Temperature: new(0.0),
		Messages: []engines.Message{{Role: engines.System, Content: system}, {Role: engines.User, Content: user}},
	}, nil)
	if err != nil {
		return "", err
	}
	if answer.Text == "" {
		return "", errors.New("the model gave no answer")
	}
	return answer.Text, nil
}
