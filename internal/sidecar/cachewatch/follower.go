package cachewatch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/upstreamerr"
)

// Options configure a [Follower]. Log, Registry and Every may be left out.
type Options struct {
	// Engines returns the engines that are followed now. When it changes, those that serve the same models begin anew if something
	// about them has changed: prompts that were followed are not any more, and Cleared is called. Others go on.
	Engines func() []Engine
	// BaseURL is that of engines without a URL.
	BaseURL string
	// Lost is called for each part of a prompt that no cache holds any more, Shrunk for each with only its first tokens
	// left, by the pilot's count, and Indexed for a lost prompt that the index endpoints know by its ID. Cleared is called when the
	// engines that serve some models (none: all) hold nothing any more. The calls are concurrent, but those about engines that
	// serve the same models come in order, one at a time.
	Lost    func(scope contextpilot.Scope, id string)
	Shrunk  func(scope contextpilot.Scope, id string, tokens int)
	Indexed func(tenant, id string)
	Cleared func(models []string)
	// Left is called for a prompt of which no cache holds more than its first tokens, as the engine counts them, and Emptied when
	// engines have reported that they hold nothing any more. Nil: neither is.
	Left    func(tenant, id string, tokens int)
	Emptied func(models []string)

	Log      *slog.Logger          // nil: slog.Default
	Registry prometheus.Registerer // nil: none
	// Every is how often the state of connections is looked at, for logs; 0: a second.
	Every time.Duration
	// MaxBytes returns the bound of the bodies that are kept to ask an engine's tokenizer, in bytes of all together. One that is
	// alone always has room.
	MaxBytes func() int64
}

// Follower follows engines. It is the proxy's Caches. Safe for concurrent use, but for Run, of which there is one.
type Follower struct {
	opt    Options
	counts counts
	client *http.Client
	began  atomic.Bool
	now    atomic.Pointer[generation] // nil: no engine is followed

	holding sync.Mutex // room for a body is looked for and taken by one at a time
}

var _ proxy.Caches = (*Follower)(nil)

// generation is what follows one list of engines.
type generation struct {
	engines []Engine
	fleets  []*fleet
}

// New returns a Follower; [Follower.Run] connects it. Errors are about metrics that are in the registry already.
func New(o Options) (*Follower, error) {
	o.Log, o.Every = cmp.Or(o.Log, slog.Default()), cmp.Or(o.Every, time.Second)
	if o.Left == nil {
		o.Left = func(string, string, int) {}
	}
	if o.Emptied == nil {
		o.Emptied = func([]string) {}
	}
	f := &Follower{opt: o, client: &http.Client{Transport: upstreamerr.Transport(&http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: tokenizers, IdleConnTimeout: time.Minute,
	})}}
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
	now := new(generation)
	defer func() {
		f.now.Store(nil)
		now.stop()
	}()
	for ctx.Err() == nil {
		if engines := f.opt.Engines(); !reflect.DeepEqual(engines, now.engines) && len(engines)+len(now.engines) > 0 {
			now = f.change(ctx, now, engines)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// change follows another list of engines. Fleets that are as they were go on; those that are gone are reported as cleared, since
// nothing will be known of what their engines hold.
func (f *Follower) change(ctx context.Context, old *generation, engines []Engine) *generation {
	g := &generation{engines: slices.Clone(engines)}
	var begun []*fleet
	for _, list := range byModels(engines) {
		if i := slices.IndexFunc(old.fleets, func(fl *fleet) bool { return reflect.DeepEqual(fl.list, list) }); i >= 0 {
			g.fleets = append(g.fleets, old.fleets[i])
			continue
		}
		if fl := newFleet(f, list); len(fl.engines) > 0 {
			g.fleets, begun = append(g.fleets, fl), append(begun, fl)
		}
	}
	f.now.Store(g)
	if len(engines) == 0 {
		f.now.Store(nil)
	}
	gone := &generation{}
	for _, fl := range old.fleets {
		if !slices.Contains(g.fleets, fl) {
			gone.fleets = append(gone.fleets, fl)
		}
	}
	gone.stop() // before others start, which may listen where they did
	for _, fl := range gone.fleets {
		f.opt.Cleared(fl.models)
	}
	for _, fl := range begun {
		fl.start(ctx)
	}
	return g
}

// stop ends all fleets, and waits for their end.
func (g *generation) stop() {
	for _, fl := range g.fleets {
		fl.stop()
	}
}

// byModels puts engines together that serve the same models, in the order of the list.
func byModels(engines []Engine) [][]Engine {
	var lists [][]Engine
	for _, e := range engines {
		i := slices.IndexFunc(lists, func(list []Engine) bool { return slices.Equal(sorted(list[0].Models), sorted(e.Models)) })
		if i < 0 {
			i, lists = len(lists), append(lists, nil)
		}
		lists[i] = append(lists[i], e)
	}
	return lists
}

func sorted(models []string) []string { return slices.Sorted(slices.Values(models)) }

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

// BlockSize returns the tokens of a block in the caches of a model's engines; 0: it is not known, or not the same in all.
func (f *Follower) BlockSize(model string) int {
	g := f.now.Load()
	if g == nil {
		return 0
	}
	fl := g.fleet(model)
	if fl == nil {
		return 0
	}
	return fl.group.BlockSize()
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
