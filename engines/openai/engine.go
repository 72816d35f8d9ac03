package openai

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/outbox"
	"github.com/ragpilot/ragpilot/internal/base/pause"
)

// Engine sends chats to one OpenAI-compatible server. It is safe for concurrent use and keeps no goroutine
// of its own; Close lets go of its idle connections.
type Engine struct {
	config    Config
	base      string // without a trailing slash, for building URLs
	shown     string // the same without a password, for errors
	client    *http.Client
	ownClient bool
	served    outbox.Outbox
	templates atomic.Bool // the server makes tokens of a chat in the form of llama.cpp
}

var _ engines.Engine = (*Engine)(nil)

// New returns an engine for the server at config.BaseURL, which is not contacted. The configuration is copied.
// An error names the field at fault and its value.
func New(config Config) (*Engine, error) {
	config, base, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Engine{config: config, base: base.String(), shown: base.Redacted(), client: config.HTTPClient}
	if e.client == nil {
		e.client, e.ownClient = newClient(config.Timeouts.Connect), true
	}
	return e, nil
}

// Name returns Config.Label.
func (e *Engine) Name() string { return e.config.Label }

// Close closes the idle connections of the engine's own client; a Config.HTTPClient is left alone. Requests
// under way are not disturbed, and the engine may be used again. The error is always nil.
func (e *Engine) Close() error {
	if e.ownClient {
		e.client.CloseIdleConnections()
	}
	return nil
}

// Subscribe registers sink for a Served event after every complete answer, delivered before Generate returns.
// Calls of one sink do not overlap. An event that is being delivered while the subscription is cancelled may
// still arrive; the sink may itself cancel, but must not call Generate.
func (e *Engine) Subscribe(sink func(events ...contextpilot.Event)) (cancel func()) {
	return e.served.Subscribe(sink)
}

// Report gives events to the sinks of [Engine.Subscribe], in order with the Served events of this engine. It is for
// packages that learn of the server's cache on another way. Scopes are left as they are.
func (e *Engine) Report(events ...contextpilot.Event) {
	e.served.Put(events)
	e.served.Deliver()
}

// Generate implements [engines.Engine]. The context's deadline bounds everything, waits for a retry included.
//
// Errors name the base URL and wrap, besides the cause: [engines.ErrUnreachable] if no answer began,
// [engines.ErrRefused] and a [*StatusError] for an error answer, [engines.ErrInterrupted] if the answer broke
// off after it began. They wrap [engines.ErrNotTaken] too if no connection could be made, or the server turned the request away
// with status 429 or 503, at every attempt. When one of Config.Timeouts ran out they also wrap [os.ErrDeadlineExceeded], when ctx
// ended its error. An error of onText is wrapped together with ErrInterrupted.
func (e *Engine) Generate(ctx context.Context, req engines.Request, onText func(piece string) error) (engines.Response, error) {
	start := e.config.Now()
	c, err := e.prepare(req)
	if err != nil {
		return engines.Response{ID: req.ID}, e.name(err)
	}
	a := answer{onText: onText, now: e.config.Now, limit: e.config.MaxAnswerBytes, chunk: chunksOf(ctx)}
	fault := e.deliver(ctx, c, &a)

	response := engines.Response{
		ID:      req.ID,
		Text:    a.text.String(),
		Finish:  a.finish,
		Choices: a.choices,
		Usage:   a.counts.result(),
		Total:   e.config.Now().Sub(start),
	}
	if response.ID == "" {
		response.ID = a.id
	}
	if !a.first.IsZero() {
		response.TTFT = a.first.Sub(start)
	}
	if fault != nil {
		return response, e.name(fault)
	}
	if response.ID == "" {
		response.ID = "req-" + rand.Text() // a server without ids
	}
	e.Report(contextpilot.Event{
		Kind:    contextpilot.Served,
		Scope:   e.config.Scope,
		Request: response.ID,
		Tokens:  response.Usage.CachedTokens,
		Output:  response.Usage.OutputTokens,
		Prompt:  response.Usage.PromptTokens,

		CachedKnown: response.Usage.CachedKnown,
	})
	return response, nil
}

// name says in an error which engine it is about.
func (e *Engine) name(err error) error { return fmt.Errorf("engine at %s: %w", e.shown, err) }

// deliver sends the call until an answer begins, or no further attempt is allowed, and reads the answer into a.
func (e *Engine) deliver(ctx context.Context, c call, a *answer) error {
	notTaken := true // by none of the attempts
	for n := 0; ; n++ {
		fault := e.attempt(ctx, c, a)
		if fault == nil {
			return nil
		}
		if notTaken = notTaken && fault.notTaken; notTaken {
			fault.err = notTakenError{fault.err}
		}
		wait, again := e.retryWait(ctx, n, fault)
		if !again {
			if n > 0 {
				return fmt.Errorf("%w (attempt %d)", fault.err, n+1)
			}
			return fault.err
		}
		if !pause.For(ctx, wait) {
			return fmt.Errorf("%w while waiting to repeat it: %w", endedErr(ctx), fault.err)
		}
	}
}

// endpoint joins a path to the base URL.
func (e *Engine) endpoint(path string) string { return e.base + path }

// root is the base URL without the version path, where engines have their endpoints outside the OpenAI API.
func root(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base // cannot be: the base came from a parsed URL
	}
	if n := len(u.Path) - len("/v1"); n >= 0 && u.Path[n:] == "/v1" {
		u.Path = u.Path[:n]
	}
	return u.String()
}
