package follow

import (
	"context"
	"errors"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
)

// Config configures a [Follower].
type Config struct {
	// Source is the server's publisher. Required.
	Source kvevents.Source
	// Events are further settings of the subscriber; its Sources and Sink are set here.
	Events kvevents.Config
	// Residency are settings of the index; its Replica and OnUpdate are set here.
	Residency residency.Config
}

// Follower follows one cache. Safe for concurrent use, but for Run, of which there is one.
type Follower struct {
	sub   *kvevents.Subscriber
	index *residency.Index

	mu   sync.Mutex
	sink func(...contextpilot.Event) // nil: Run has not begun, or has ended
}

// New returns a Follower; [Follower.Run] connects it. Errors name the field of the subscriber's configuration.
func New(cfg Config) (*Follower, error) {
	if cfg.Source.Endpoint == "" {
		return nil, errors.New("follow: Config.Source.Endpoint is empty")
	}
	f := &Follower{}
	cfg.Residency.Replica, cfg.Residency.OnUpdate = cfg.Source.Name, f.report
	f.index = residency.New(cfg.Residency)
	cfg.Events.Sources = []kvevents.Source{cfg.Source}
	cfg.Events.Sink = func(kvevents.Publisher) kvevents.Sink { return f.index }
	var err error
	f.sub, err = kvevents.New(cfg.Events)
	return f, err
}

// Prompt enters a request's prompt, in tokens as the server sees them. It may come before the request is sent or, where the
// answer brings the tokens, after.
func (f *Follower) Prompt(id string, tokens []uint32, key residency.Key) {
	ints := make([]int, len(tokens))
	for i, t := range tokens {
		ints[i] = int(t)
	}
	f.index.Register(id, ints, key)
}

// Answered takes what the engine says of its answers: a request can be reported as lost once it was Served. It is a sink for the engine's
// Subscribe; other events are ignored.
func (f *Follower) Answered(events ...contextpilot.Event) {
	for _, ev := range events {
		if ev.Kind == contextpilot.Served {
			f.index.Served(ev.Request)
		}
	}
}

// Aborted tells that a request ended without an answer.
func (f *Follower) Aborted(id string) { f.index.Aborted(id) }

// Run follows the server until ctx ends, and gives sink what requests lost, in order, one call at a time. It is how engines take a
// Follower for a source.
func (f *Follower) Run(ctx context.Context, sink func(events ...contextpilot.Event)) error {
	f.mu.Lock()
	if f.sink != nil {
		f.mu.Unlock()
		return errors.New("follow: Run was called twice")
	}
	f.sink = sink
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sink = nil
	}()
	return f.sub.Run(ctx)
}

func (f *Follower) report(updates []residency.Update) {
	f.mu.Lock()
	sink := f.sink
	f.mu.Unlock()
	if sink != nil {
		sink(residency.Events(contextpilot.Scope{}, updates)...)
	}
}

// Index tells what is resident.
func (f *Follower) Index() *residency.Index { return f.index }

// Status tells how complete the picture is, and what was missed.
func (f *Follower) Status() []kvevents.Status { return f.sub.Status() }
