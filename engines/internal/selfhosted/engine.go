package selfhosted

import (
	"context"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Engine sends chats to one server. It is safe for concurrent use and keeps no goroutine of its own; Close closes its idle
// connections.
type Engine struct {
	dialect *Dialect
	config  Config
	chats   *openai.Engine

	mu    sync.Mutex
	found Features // guarded by mu
}

var _ engines.Engine = (*Engine)(nil)

// Name returns Config.Server.Label; without one, the kind of server ("vllm:", "sglang:") and the base URL without its password.
func (e *Engine) Name() string { return e.chats.Name() }

// Close closes idle connections, as [openai.Engine.Close] does.
func (e *Engine) Close() error { return e.chats.Close() }

// Subscribe registers sink for Served after every answer, for Cleared after [Engine.ResetCache], and for what
// [Engine.Follow] brings. The rules are those of [openai.Engine.Subscribe].
func (e *Engine) Subscribe(sink func(events ...contextpilot.Event)) (cancel func()) {
	return e.chats.Subscribe(sink)
}

// Tokenizer returns a counter of tokens that asks this server, see [openai.Engine.Tokenizer].
func (e *Engine) Tokenizer(config openai.TokenizerConfig) (*openai.Tokenizer, error) {
	return e.chats.Tokenizer(config)
}

// Generate implements [engines.Engine]: it is [Engine.Chat] for the tenant of Config.Server.Scope and without a session.
func (e *Engine) Generate(ctx context.Context, req engines.Request, onText func(piece string) error) (engines.Response, error) {
	response, err := e.Chat(ctx, Request{Request: req}, onText)
	return response.Response, err
}

// Source reports what the engine's cache lost, for example a subscriber of its cache events. Run calls sink with events
// in order, one call at a time, until ctx ends; their Scope is filled in here where it is zero.
type Source interface {
	Run(ctx context.Context, sink func(events ...contextpilot.Event)) error
}

// Follow runs a source and gives its events to the subscribers, with the scope of this engine where they have none. It
// blocks until the source returns, and returns its error.
func (e *Engine) Follow(ctx context.Context, source Source) error {
	return source.Run(ctx, func(events ...contextpilot.Event) {
		scoped := make([]contextpilot.Event, len(events))
		for i, event := range events {
			if event.Scope == (contextpilot.Scope{}) {
				event.Scope = e.config.Server.Scope
			}
			scoped[i] = event
		}
		e.chats.Report(scoped...)
	})
}
