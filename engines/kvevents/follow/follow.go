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
	// Source is the server's publisher. Required, unless there are Sources.
	Source kvevents.Source
	// Sources are used instead of Source where there are several caches: one for each data-parallel rank of a server, see
	// [kvevents.Ranks], or one for each server behind an address. A request is taken to be as resident as in the cache that
	// holds most of it.
	Sources []kvevents.Source
	// Events are further settings of the subscriber; its Sources, Sink and Forgotten are set here.
	Events kvevents.Config
	// Residency are settings of the index of each cache; Replica and OnUpdate are set here.
	Residency residency.Config
}

// Follower follows the caches of one server, or of several among which a proxy chooses. Safe for concurrent use, but for Run, of
// which there is one.
type Follower struct {
	sub    *kvevents.Subscriber
	group  *residency.Group
	scopes *residency.Scopes

	mu      sync.Mutex // guards what follows
	running bool
	pending []contextpilot.Event // for Run to give away
	some    chan struct{}        // there are some
}

// New returns a Follower; [Follower.Run] connects it. Errors name the field of the subscriber's configuration.
func New(cfg Config) (*Follower, error) {
	if len(cfg.Sources) == 0 {
		if cfg.Source.Endpoint == "" {
			return nil, errors.New("follow: Config.Source.Endpoint is empty")
		}
		cfg.Sources = []kvevents.Source{cfg.Source}
	}
	f := &Follower{scopes: residency.NewScopes(cfg.Residency.MaxRequests), some: make(chan struct{}, 1)}
	cfg.Residency.Replica, cfg.Residency.OnUpdate = cfg.Sources[0].Name, f.report
	f.group = residency.NewGroup(cfg.Residency)
	for _, s := range cfg.Sources {
		if !s.Listen { // it has one publisher: prompts that come before it is met are not lost
			f.group.Index(nameOf(kvevents.Publisher{Source: s.Name}))
		}
	}
	cfg.Events.Sources = cfg.Sources
	cfg.Events.Sink = func(p kvevents.Publisher) kvevents.Sink { return f.group.Index(nameOf(p)) }
	cfg.Events.Forgotten = func(p kvevents.Publisher) { f.group.Remove(nameOf(p)) }
	var err error
	f.sub, err = kvevents.New(cfg.Events)
	return f, err
}

// nameOf names the cache of a publisher. Sources have one name for each rank.
func nameOf(p kvevents.Publisher) string { return p.Source + "\x00" + p.Topic }

// Prompt enters a request's prompt, in tokens as the server sees them. It may come before the request is sent or, where the
// answer brings the tokens, after. Events about it have no scope: engines fill in their own.
func (f *Follower) Prompt(id string, tokens []uint32, key residency.Key) {
	f.PromptIn(contextpilot.Scope{}, id, tokens, key)
}

// PromptIn is Prompt for a server that has several tenants or models: events about the request name the scope that it was
// planned in.
func (f *Follower) PromptIn(scope contextpilot.Scope, id string, tokens []uint32, key residency.Key) {
	ints := make([]int, len(tokens))
	for i, t := range tokens {
		ints[i] = int(t)
	}
	f.scopes.Add(id, scope)
	f.group.Register(id, ints, key)
}

// Answered takes what the engine says of its answers: a request can be reported as lost once it was Served. It is a sink for the engine's
// Subscribe; other events are ignored.
func (f *Follower) Answered(events ...contextpilot.Event) {
	for _, ev := range events {
		if ev.Kind == contextpilot.Served {
			f.group.Served(ev.Request)
		}
	}
}

// Aborted reports that a request ended without an answer. Call it after every error of the engine's Generate: a request that did not
// end is never reported as lost. It does no harm where the prompt never came.
func (f *Follower) Aborted(id string) { f.group.Aborted(id) }

// Run follows the server until ctx ends, and gives sink what requests lost, in order, one call at a time and in no goroutine that is
// in another method of the Follower: sink may be where [Follower.Answered] is called from. It is how engines take a Follower for a
// source.
func (f *Follower) Run(ctx context.Context, sink func(events ...contextpilot.Event)) error {
	f.mu.Lock()
	if f.running {
		f.mu.Unlock()
		return errors.New("follow: Run was called twice")
	}
	f.running = true
	f.mu.Unlock()
	ended := make(chan struct{})
	var giving sync.WaitGroup
	giving.Go(func() {
		for {
			select {
			case <-f.some:
				f.give(sink)
			case <-ended:
				f.give(sink)
				return
			}
		}
	})
	err := f.sub.Run(ctx)
	close(ended)
	giving.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running, f.pending = false, nil
	return err
}

// give gives away what is pending.
func (f *Follower) give(sink func(...contextpilot.Event)) {
	f.mu.Lock()
	events := f.pending
	f.pending = nil
	f.mu.Unlock()
	if len(events) > 0 {
		sink(events...)
	}
}

// maxPending bounds the events that wait for a sink that takes none.
const maxPending = 1 << 16

// report takes what requests have lost. It may be called in the goroutine in which an engine reports its answers; Run reports to
// the engine later. A sink that falls too far behind gets one event that everything is lost, in place of all that wait for it.
func (f *Follower) report(updates []residency.Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.running {
		return
	}
	f.pending = append(f.pending, f.scopes.Events(updates)...)
	if len(f.pending) > maxPending {
		f.pending = f.scopes.Events([]residency.Update{{Cleared: kvevents.Overflow}})
	}
	select {
	case f.some <- struct{}{}:
	default:
	}
}

// Resident returns how much of a request is resident, see [residency.Group.Resident].
func (f *Follower) Resident(id string) (tokens int, complete bool) { return f.group.Resident(id) }

// Caches returns what is resident in each cache.
func (f *Follower) Caches() *residency.Group { return f.group }

// Status returns how complete the picture is, and what was missed.
func (f *Follower) Status() []kvevents.Status { return f.sub.Status() }
