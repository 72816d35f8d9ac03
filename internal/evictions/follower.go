package evictions

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/internal/proxy"
	"github.com/ragpilot/ragpilot/internal/serve"
)

// Follower follows engines. It is the proxy's Caches. Safe for concurrent use, but for Run, of which there is one.
type Follower struct {
	opt    Options
	counts counts
	client *http.Client
	began  atomic.Bool
	now    atomic.Pointer[generation] // nil: no engine is followed
}

var _ proxy.Caches = (*Follower)(nil)

// generation is what follows one list of engines.
type generation struct {
	engines []serve.Engine
	fleets  []*fleet
}

// New returns a Follower; [Follower.Run] connects it. Errors are about metrics that are in the registry already.
func New(o Options) (*Follower, error) {
	f := &Follower{opt: o.withDefaults()}
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: tokenizers, IdleConnTimeout: time.Minute}
	}
	f.client = &http.Client{Transport: transport}
	if o.Registry != nil {
		if err := o.Registry.Register(collector{f}); err != nil {
			return nil, fmt.Errorf("evictions: metrics: %w", err)
		}
	}
	return f, nil
}

// Run follows engines until ctx ends. All it has started has ended when it returns.
func (f *Follower) Run(ctx context.Context) {
	if f.began.Swap(true) {
		return
	}
	defer f.client.CloseIdleConnections()
	tick := time.NewTicker(f.opt.Every)
	defer tick.Stop()
	for ctx.Err() == nil {
		f.follow(ctx, f.opt.Engines(), tick.C)
	}
}

// follow follows a list of engines until it changes.
func (f *Follower) follow(ctx context.Context, engines []serve.Engine, tick <-chan time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	var own sync.WaitGroup
	defer own.Wait()
	defer f.now.Store(nil)
	defer cancel()
	if len(engines) > 0 {
		g := &generation{engines: slices.Clone(engines)}
		for _, e := range engines {
			if err := f.join(g, e); err != nil {
				f.opt.Log.Error("an engine cannot be followed", "engine", e.Name, "error", err)
			}
		}
		for _, fl := range g.fleets {
			own.Go(func() { fl.run(ctx) })
		}
		f.now.Store(g)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		if now := f.opt.Engines(); !reflect.DeepEqual(now, engines) && len(now)+len(engines) > 0 {
			return
		}
	}
}

// join adds an engine to the fleet that serves its models.
func (f *Follower) join(g *generation, cfg serve.Engine) error {
	e, err := newEngine(cfg, f)
	if err != nil {
		return err
	}
	models := slices.Sorted(slices.Values(cfg.Models))
	i := slices.IndexFunc(g.fleets, func(fl *fleet) bool { return slices.Equal(fl.models, models) })
	if i < 0 {
		i = len(g.fleets)
		g.fleets = append(g.fleets, newFleet(f, models, cfg.BlockSize))
	}
	g.fleets[i].add(e)
	return nil
}

// fleet returns the engines that serve a model, nil if none does.
func (g *generation) fleet(model string) *fleet {
	for _, fl := range g.fleets {
		if len(fl.models) == 0 || slices.Contains(fl.models, model) {
			return fl
		}
	}
	return nil
}

// Follows implements [proxy.Caches].
func (f *Follower) Follows(model string) bool {
	g := f.now.Load()
	return g != nil && g.fleet(model) != nil
}

// Follow implements [proxy.Caches].
func (f *Follower) Follow(p proxy.Prompt) proxy.Followed {
	g := f.now.Load()
	if g == nil {
		return nil
	}
	fl := g.fleet(p.Model)
	if fl == nil {
		return nil
	}
	return fl.prompt(p)
}
