package cachewatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/base/pause"
)

// engine is one engine that is followed.
type engine struct {
	fleet  *fleet
	cfg    Engine
	server server
	log    *slog.Logger
	found  atomic.Pointer[features]
	again  chan struct{} // it may be another process: look once more
	tally  tally

	mu   sync.Mutex // guards what follows
	sub  *kvevents.Subscriber
	at   map[string]published // by name
	free map[string]string    // names of caches of sources that wait for their first publisher
	// names are those of the caches of publishers that were met.
	names map[kvevents.Publisher]string
	bad   bool // the tokenizer has failed, and the log says so
}

func newEngine(cfg Engine, fl *fleet) (*engine, error) {
	cfg.URL = cmp.Or(cfg.URL, fl.f.opt.BaseURL)
	server, err := newServer(cfg, fl.f.client)
	return &engine{fleet: fl, cfg: cfg, server: server, log: fl.f.opt.Log.With("engine", cfg.Name), again: make(chan struct{}, 1)}, err
}

// features are those that were found last.
func (e *engine) features() features {
	if f := e.found.Load(); f != nil {
		return *f
	}
	return features{}
}

// run follows the engine until ctx ends.
func (e *engine) run(ctx context.Context) {
	var own sync.WaitGroup
	defer own.Wait()
	own.Go(func() { e.detect(ctx) })
	own.Go(func() { e.watch(ctx) })
	var wait backoff
	for ctx.Err() == nil {
		moved, err := e.subscribe(ctx)
		if moved {
			wait = 0
			continue
		}
		if err != nil && ctx.Err() == nil {
			e.log.Warn("cache events cannot be followed", "error", err)
		}
		wait.sleep(ctx)
	}
}

// Waits between attempts double from the first to the longest.
const (
	firstWait = time.Second
	longWait  = 30 * time.Second
)

// backoff is the next wait; 0: the first one.
type backoff time.Duration

// sleep waits, or returns when ctx ends.
func (b *backoff) sleep(ctx context.Context) {
	d := max(time.Duration(*b), firstWait)
	*b = backoff(min(2*d, longWait))
	pause.For(ctx, d)
}

// look has detect look once more.
func (e *engine) look() {
	select {
	case e.again <- struct{}{}:
	default:
	}
}

// detect finds out what the engine can do, until it answers, and again when it may be another process.
func (e *engine) detect(ctx context.Context) {
	var wait backoff
	for ctx.Err() == nil {
		found, err := e.server.detect(ctx)
		if err != nil {
			if wait == 0 && ctx.Err() == nil { // the first failure in a row
				e.log.Info("the engine cannot be asked what it can do, trying again", "error", err)
			}
			wait.sleep(ctx)
			continue
		}
		wait = 0
		e.use(found)
		select {
		case <-ctx.Done():
		case <-e.again:
		}
	}
}

// use takes over what was found.
func (e *engine) use(found features) {
	switch e.cfg.PromptTokens {
	case "answer":
		found.tokenize = false
	case "tokenize":
		found.answer = false
	}
	before := e.found.Swap(&found)
	if before != nil && before.version == found.version {
		return
	}
	how := "none: what requests have lost is not known"
	switch {
	case found.answer:
		how = "in answers"
	case found.tokenize:
		how = "from the tokenizer"
	}
	e.log.Info("engine", "kind", e.cfg.Kind, "version", found.version, "prompt_tokens", how)
	if found.cacheOff {
		e.log.Warn("the engine's prefix cache is switched off: nothing is reused")
	}
}

// failed logs that the tokenizer did not answer, once in a row.
func (e *engine) failed(err error) {
	e.mu.Lock()
	first := !e.bad
	e.bad = true
	e.mu.Unlock()
	if first && !errors.Is(err, context.Canceled) {
		e.log.Warn("the engine's tokenizer does not return a prompt's tokens", "error", err)
	}
}

// sources are where the engine publishes, each with a name of its own.
func (e *engine) sources(ctx context.Context) ([]published, error) {
	if len(e.cfg.Sources) > 0 {
		out := make([]published, len(e.cfg.Sources))
		for i, s := range e.cfg.Sources {
			out[i].Source = s
		}
		return out, nil
	}
	list, err := e.server.sources(ctx)
	if err != nil {
		return nil, fmt.Errorf("the engine does not say where it publishes: %w", err)
	}
	if len(list) == 0 {
		return nil, errors.New("the engine says that it publishes no events")
	}
	for i := range list {
		list[i].Name = e.cfg.Name
		if len(list) > 1 {
			list[i].Name = fmt.Sprintf("%s/dp%d", e.cfg.Name, list[i].Rank)
		} else {
			list[i].Rank = kvevents.AnyRank
		}
		if e.cfg.Topic != "" {
			list[i].Topic = e.cfg.Topic
		}
	}
	return list, nil
}

func byName(list []published) map[string]published {
	at := make(map[string]published, len(list))
	for _, s := range list {
		at[s.Name] = s
	}
	return at
}

// subscribe follows the engine's events until ctx ends, something is wrong with where they are, or the engine, asked for it, says that
// it publishes elsewhere now.
func (e *engine) subscribe(ctx context.Context) (moved bool, err error) {
	list, err := e.sources(ctx)
	if err != nil {
		return false, err
	}
	at, free := byName(list), make(map[string]string, len(list))
	sources := make([]kvevents.Source, len(list))
	for i, s := range list {
		sources[i], free[s.Name] = s.Source, s.Name
		e.fleet.group.Index(s.Name) // before the first prompt
	}
	sub, err := kvevents.New(kvevents.Config{
		Forgotten: e.forgotten,
		Sources:   sources, Sink: func(p kvevents.Publisher) kvevents.Sink { return e.fleet.group.Index(e.cache(p)) },
		StartTime: e.started,
	})
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	before := e.at
	e.sub, e.at, e.free, e.names = sub, at, free, make(map[kvevents.Publisher]string)
	e.mu.Unlock()
	for name := range before {
		if _, ok := at[name]; !ok {
			e.fleet.group.Remove(name)
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var own sync.WaitGroup
	if len(e.cfg.Sources) == 0 {
		own.Go(func() {
			moved = e.moved(ctx, sub, at)
			stop()
		})
	}
	err = sub.Run(ctx)
	stop()
	own.Wait()
	if moved {
		e.leave(at)
	}
	return moved, err
}

// errSeveral: several engines publish to one source, and their server reports when one of them was started.
var errSeveral = errors.New("several engines publish there: when they were started is not known")

// started returns when a publisher's process began, if no other engine shares its source.
func (e *engine) started(ctx context.Context, p kvevents.Publisher) (float64, error) {
	e.mu.Lock()
	n := 0
	for other := range e.names {
		if other.Source == p.Source {
			n++
		}
	}
	e.mu.Unlock()
	if n > 1 {
		return 0, errSeveral
	}
	return e.server.started(ctx)
}

// moved asks the engine again where it publishes, whenever it may be another process: after each connection, and while there is
// none. It is true once that is elsewhere, and false when ctx ends.
func (e *engine) moved(ctx context.Context, sub *kvevents.Subscriber, at map[string]published) bool {
	var asked uint64 // connections when the engine was asked last
	for wait := backoff(0); ; {
		wait.sleep(ctx)
		if ctx.Err() != nil {
			return false
		}
		var connects uint64
		down := false
		for _, s := range sub.Status() {
			connects += s.Connects
			down = down || !s.Connected
		}
		if !down && connects == asked {
			wait = 0
			continue
		}
		list, err := e.sources(ctx)
		switch {
		case err != nil:
		case !maps.Equal(byName(list), at):
			return true
		default:
			asked = connects
		}
	}
}

// leave forgets what the engine held when it published elsewhere: it is another process now.
func (e *engine) leave(at map[string]published) {
	e.log.Info("cache events: the engine publishes elsewhere now, going on there")
	for name := range at {
		x := e.fleet.group.Index(name)
		x.Clear(kvevents.Restarted)
		x.Complete(false)
	}
	e.look()
}

// cache names the cache of a publisher. The first one of a source has the source's name: prompts that came before its first
// message are known to it.
func (e *engine) cache(p kvevents.Publisher) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	name, ok := e.free[p.Source]
	if ok {
		delete(e.free, p.Source)
	} else {
		name = p.Source + "\x00" + p.Topic
	}
	e.names[p] = name
	return name
}

// forgotten forgets the cache of a publisher that has gone. One that has its source's name waits for the next publisher.
func (e *engine) forgotten(p kvevents.Publisher) {
	e.mu.Lock()
	name := e.names[p]
	delete(e.names, p)
	_, own := e.at[name]
	if own {
		e.free[p.Source] = name
	}
	e.mu.Unlock()
	if !own {
		e.fleet.group.Remove(name)
	}
}

// status returns what is known of the engine's publishers, by whom, and where they are.
func (e *engine) status() (sub *kvevents.Subscriber, list []kvevents.Status, at map[string]published) {
	e.mu.Lock()
	sub, at = e.sub, e.at
	e.mu.Unlock()
	if sub == nil {
		return nil, nil, nil
	}
	list = sub.Status()
	for i := range list {
		s := &list[i]
		if from := at[s.Source]; from.mayDial && !s.Connected && s.Err != nil && s.Hint == "" {
			const hint = "there is no listener: an engine whose endpoint names a host connects to %s instead of listening there; give it " +
				"one with *"
			s.Hint = fmt.Sprintf(hint, from.Endpoint)
		}
	}
	return sub, list, at
}
