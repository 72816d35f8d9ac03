package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

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

// openMemories serves Mem0's REST API, if memories are kept: on its own paths, and once more under /mem0, where POST /reset
// and POST /search are not the index's.
func (a *assembly) openMemories() error {
	m := a.cfg.Memory
	if m.Dir == "" {
		return nil
	}
	extract, err := extractor(a.cfg)
	if err != nil {
		return err
	}
	embeds, err := memory.OpenEmbedder(m.Embedding(), memory.EmbedderOptions{Log: a.log}) // one for all tenants
	if err != nil {
		return fmt.Errorf("memory.embedder %w", err)
	}
	a.closers = append(a.closers, embeds.Close)
	a.memories, err = memories.Open(m.Dir, memories.Options{
		Extractor: extract, Embedder: embeds.Embedder(), ByWords: m.Embedding().Auto(), Arrived: embeds.Arrived(),
		Open: a.bounds.stores, Indexes: a.bounds.indexes, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.closers = append(a.closers, a.memories.Close)
	folder := a.memories
	api := memoryapi.New(memoryapi.Options{
		Store: func(ctx context.Context, tenant string) (memory.Store, func(), error) {
			if err := embeds.Check(); err != nil {
				return nil, nil, err
			}
			return folder.Use(ctx, tenant)
		},
		Tenant:     func(r *http.Request) string { return tenant.From(r.Context()) },
		Extraction: m.Extract, Index: a.index, Log: a.log,
	})
	for _, prefix := range []string{"", "/mem0"} {
		api.Hosted(a.main, prefix)
		api.SelfHosted(a.main, prefix)
	}
	return nil
}

// forgetMemories drops a tenant's memories, and reports whether there were any.
func (a *API) forgetMemories(ctx context.Context, tenant string) (known bool, err error) {
	if a.memories == nil {
		return false, nil
	}
	return a.memories.Forget(ctx, tenant)
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
