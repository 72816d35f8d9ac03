package llamacpp

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/outbox"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Engine sends chats to one llama-server and follows its slots. It is safe for concurrent use and keeps no goroutine of its
// own; Close lets go of idle connections.
type Engine struct {
	config    Config
	chat      *openai.Engine
	client    *client
	ownClient bool
	disk      *disk // nil: off
	contexts  map[string]*compressed
	outbox    outbox.Outbox // has its own locks, taken after mu
	// identifying has an element while the server's process is asked for, so that answers are applied in their order.
	identifying chan struct{}
	looking     chan struct{} // has an element for each request that asks before it is sent

	mu      sync.Mutex
	book    book      // guarded by mu, like all below
	waiting []*waiter // in the order of arrival
	stats   Stats
	seen    uint64            // client.dials when the server's process was last asked for
	models  map[string]string // SHA-256 of the model's file, by its path, length and time
	// suspicions counts what showed that the book may be wrong, cleared how many of them the last identification came after.
	suspicions, cleared uint64
}

var (
	_ engines.Engine   = (*Engine)(nil)
	_ engines.Unshared = (*Engine)(nil)
)

// New returns an engine for the server at config.Server.BaseURL, which is not contacted. The configuration is copied. An
// error names the field at fault and its value.
func New(config Config) (*Engine, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	own := config.Server.HTTPClient == nil
	if own {
		config.Server.HTTPClient = newHTTPClient()
	}
	chat, err := openai.New(config.Server)
	if err != nil {
		return nil, fmt.Errorf("llamacpp: Config.Server: %w", err)
	}
	contexts, err := openContexts(config.Contexts)
	if err != nil {
		return nil, err
	}
	disk, err := openDisk(config)
	if err != nil {
		return nil, err
	}
	return &Engine{
		config:      config,
		disk:        disk,
		contexts:    contexts,
		chat:        chat,
		client:      &client{chat: chat, again: pooled, blind: !telling(config.Server.HTTPClient)},
		ownClient:   own,
		identifying: make(chan struct{}, 1),
		looking:     make(chan struct{}, looks),
		book: book{
			similarity: float32(config.Similarity), pins: !config.Unpinned, host: config.HostCache, tracker: newTracker(config.MaxRequests),
		},
	}, nil
}

// Name returns Config.Server.Label.
func (e *Engine) Name() string { return e.chat.Name() }

// Close closes the idle connections of the engine's own client; a Config.Server.HTTPClient is left alone. With Config.SlotDir it
// first saves what the free slots hold, within half a minute, and gives the folder back. The engine may be used again, without the
// folder. The error is that of giving it back.
func (e *Engine) Close() (err error) {
	if e.disk != nil {
		err = e.closeDisk()
	}
	if e.ownClient {
		e.config.Server.HTTPClient.CloseIdleConnections()
	}
	return err
}

// Subscribe registers sink for the events that the package's documentation names. Sinks are called one at a time, by the
// goroutine that runs Generate or Predict, before it returns; a sink must not call these. After cancel has returned
// a sink may still get events that were already on their way.
func (e *Engine) Subscribe(sink func(events ...contextpilot.Event)) (cancel func()) {
	return e.outbox.Subscribe(sink)
}

// Predict says what a request would find if it were sent now, and did not have to wait for a slot. It asks the server for the
// prompt's tokens, within Config.Patience, and changes nothing there. Errors are those of [Engine.Info].
func (e *Engine) Predict(ctx context.Context, req engines.Request) (Prediction, error) {
	extra := e.extras(req)
	prompt, err := e.look(ctx, req, extra)
	if err != nil {
		return Prediction{Request: req.ID, Slot: -1}, err
	}
	o := readOptions(extra)
	l := &lease{id: req.ID, prompt: prompt, reuse: o.reuse && o.simple, private: o.salted}
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.slot = o.slot; l.slot < 0 {
		l.slot = e.book.preview(prompt)
	} else {
		l.slot %= len(e.book.slots) // look has asked for them
	}
	return e.foresee(l), nil
}

// foresee predicts with what would be restored. It is called with mu held.
func (e *Engine) foresee(l *lease) Prediction {
	p := e.book.predict(l)
	if e.disk == nil || p.Slot < 0 || e.config.Unpinned || e.book.clears {
		return p
	}
	key, _ := e.disk.state(e.book.turn)
	if f := e.disk.better(key, l, e.book.slots[l.slot].share(l.prompt)); key != "" && f != nil {
		restored := slot{tokens: f.Tokens, length: f.Length}
		share := restored.share(l.prompt)
		p.Cached, p.Exact = min(share, len(l.prompt)-1), restored.exact(l.prompt, share)
	}
	return p
}

// Slots returns what the engine believes of the server's slots now, none before it has asked.
func (e *Engine) Slots() []Slot {
	e.mu.Lock()
	defer e.mu.Unlock()
	slots := make([]Slot, 0, len(e.book.slots))
	for i := range e.book.slots {
		s := &e.book.slots[i]
		slots = append(slots, Slot{Tokens: len(s.tokens), Length: s.length, Busy: s.lease != nil, Requests: len(s.holders)})
	}
	return slots
}

// usualSlots is what llama-server has if its user does not say.
const usualSlots = 4

// UnsharedSlots implements [engines.Unshared]: the number of the server's slots, 4 before it was asked.
func (e *Engine) UnsharedSlots() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.book.slots == nil {
		return usualSlots
	}
	return len(e.book.slots)
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	if e.disk != nil {
		s.Disk = e.disk.statistics()
	}
	return s
}

// Health returns nil if the server is ready. The error wraps [engines.ErrUnreachable], or [engines.ErrRefused] and a
// [*openai.StatusError], with code 503 while the server loads its model.
func (e *Engine) Health(ctx context.Context) error {
	_, err := e.client.call(ctx, http.MethodGet, "/health", nil)
	return err
}

// Info asks the server what it is. Errors are as those of Health; an answer that is none of a llama-server is an error too.
func (e *Engine) Info(ctx context.Context) (Info, error) {
	info, err := e.client.info(ctx)
	if err == nil && e.disk != nil {
		info.Disk = e.aboutDisk()
	}
	return info, err
}

// Metrics asks for the server's counters; it must run with --metrics, and refuses with code 501 otherwise. Its gauges are means
// over the time since they were last asked for, by anyone. Errors are as those of Health.
func (e *Engine) Metrics(ctx context.Context) (Metrics, error) {
	return e.client.metrics(ctx)
}

// unlock takes over the book's events, ends the locked section, and delivers them.
func (e *Engine) unlock() {
	e.outbox.Put(e.scoped(e.book.take()))
	e.mu.Unlock()
	e.outbox.Deliver()
}

// scoped enters the configured scope in events.
func (e *Engine) scoped(events []contextpilot.Event) []contextpilot.Event {
	for i := range events {
		events[i].Scope = e.config.Server.Scope
	}
	return events
}
