package discover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/engines"
)

// Options configures a [Watcher].
type Options struct {
	Router *engines.Router // required
	Source Source          // required
	// Open makes the engine of a replica; nil: replicas are routed to, but have no engine. After an error it is tried again at
	// the next interval.
	Open func(name, url string) (engines.Engine, error)
	// Close is called with an engine that Open made when its replica is gone; nil: nothing needs closing.
	Close func(name string, engine engines.Engine)
	// Probe returns nil if a replica is up; nil: GET <url>/health answers with a status below 300 within half the interval. If none
	// answers and time runs out for several that were up, those keep their state for ten probes: they may be busy.
	Probe func(ctx context.Context, name, url string) error
	// Every is the interval between looks; 0: 2 s.
	Every time.Duration
	Log   *slog.Logger // nil: nothing is logged
}

// Watcher keeps a router's replicas up to date. See [New].
type Watcher struct {
	opt   Options
	known map[string]*member
}

// member is a replica that the router has.
type member struct {
	url    string
	engine engines.Engine
	up     bool
	probed bool
	late   int // probes in a row for which time ran out while it was up
}

// New returns a Watcher; [Watcher.Run] starts it.
func New(o Options) (*Watcher, error) {
	switch {
	case o.Router == nil:
		return nil, errors.New("discover: Options.Router is nil")
	case o.Source == nil:
		return nil, errors.New("discover: Options.Source is nil")
	case o.Every < 0:
		return nil, fmt.Errorf("discover: Options.Every %s: must not be negative", o.Every)
	}
	if o.Every == 0 {
		o.Every = 2 * time.Second
	}
	if o.Probe == nil {
		o.Probe = Health(http.DefaultClient)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Watcher{opt: o, known: map[string]*member{}}, nil
}

// Health returns a Probe that asks GET <url>/health, which vLLM, SGLang and llama.cpp have.
func Health(client *http.Client) func(ctx context.Context, name, url string) error {
	return func(ctx context.Context, _, url string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/health", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
		if resp.StatusCode >= 300 {
			return fmt.Errorf("health: status %d", resp.StatusCode)
		}
		return nil
	}
}

// Run looks at once and then at every interval, until ctx ends; it returns the cause. The router keeps its replicas.
func (w *Watcher) Run(ctx context.Context) error {
	tick := time.NewTicker(w.opt.Every)
	defer tick.Stop()
	for {
		w.Look(ctx)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Look asks the source and probes all replicas, once. Not safe for concurrent use, nor while Run runs. A new replica takes
// requests when it has answered its first probe. When ctx ends meanwhile, what was not known by then stays unknown: replicas
// keep their state.
func (w *Watcher) Look(ctx context.Context) {
	named, err := w.source(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		w.opt.Log.Warn("replicas could not be looked up: going on with those known", "error", err)
	default:
		w.reconcile(named)
	}
	w.probe(ctx)
}

func (w *Watcher) source(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, w.opt.Every)
	defer cancel()
	return w.opt.Source.Replicas(ctx)
}

// reconcile adds what is new and removes what is gone. One that has another address now is another replica.
func (w *Watcher) reconcile(named map[string]string) {
	for name, m := range w.known {
		if named[name] != m.url {
			w.remove(name, m)
		}
	}
	for name, url := range named {
		if w.known[name] == nil {
			w.add(name, url)
		}
	}
}

func (w *Watcher) add(name, url string) {
	m := &member{url: url}
	if w.opt.Open != nil {
		var err error
		if m.engine, err = w.opt.Open(name, url); err != nil {
			w.opt.Log.Warn("replica could not be opened", "replica", name, "url", url, "error", err)
			return
		}
	}
	if err := w.opt.Router.AddDown(name, m.engine); err != nil { // until its first probe
		w.opt.Log.Warn("replica could not be added", "replica", name, "error", err)
		w.close(name, m)
		return
	}
	w.known[name] = m
	w.opt.Log.Info("replica found", "replica", name, "url", url)
}

func (w *Watcher) remove(name string, m *member) {
	if err := w.opt.Router.Remove(name); err != nil {
		w.opt.Log.Warn("replica could not be removed", "replica", name, "error", err)
	}
	delete(w.known, name)
	w.close(name, m)
	w.opt.Log.Info("replica gone", "replica", name)
}

func (w *Watcher) close(name string, m *member) {
	if w.opt.Close != nil && m.engine != nil {
		w.opt.Close(name, m.engine)
	}
}

// patience is the number of probes in a row that replicas may be late for together.
const patience = 10

// overload reports whether no replica answers, and for several that are up time ran out: they hardly died together, but may be
// busy together. One alone is taken for dead.
func (w *Watcher) overload(errs map[string]error) bool {
	up := 0
	for name, m := range w.known {
		switch err := errs[name]; {
		case err == nil:
			return false
		case m.up && late(err):
			up++
		}
	}
	return up > 1
}

func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// probe asks all replicas at the same time. Probes that broke off because the caller's context ended say nothing of the replicas.
func (w *Watcher) probe(caller context.Context) {
	ctx, cancel := context.WithTimeout(caller, w.opt.Every/2)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	errs := map[string]error{}
	for name, m := range w.known {
		wg.Go(func() {
			err := w.opt.Probe(ctx, name, m.url)
			mu.Lock()
			errs[name] = err
			mu.Unlock()
		})
	}
	wg.Wait()
	if caller.Err() != nil {
		return
	}
	overload := w.overload(errs)
	for name, m := range w.known {
		if overload && m.up && late(errs[name]) && m.late < patience {
			m.late++
			continue // the router may know better: what it has taken down stays down
		}
		m.late = 0
		up := errs[name] == nil
		if err := w.opt.Router.SetUp(name, up); err != nil {
			w.opt.Log.Warn("replica is not the router's any more", "replica", name, "error", err)
		}
		if up != m.up || !m.probed { // of one that never comes up, the reason is logged once
			w.opt.Log.Info("replica changed", "replica", name, "up", up, "error", errs[name])
		}
		m.up, m.probed = up, true
	}
}
