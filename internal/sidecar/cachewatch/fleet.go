package cachewatch

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// fleet is the engines that may serve the same prompts: it is not known which of them does, so what they hold is one picture.
type fleet struct {
	f       *Follower
	list    []Engine // those that it was made of
	models  []string // sorted; empty: all
	engines []*engine
	group   *residency.Group
	asking  chan *prompt // those whose tokens are asked for
	held    atomic.Int64 // bytes of bodies that are kept for the tokenizer
	stop    func()       // ends what start began, and waits for its end

	mu      sync.Mutex // guards what follows
	prompts *lru.Cache[string, placed]
}

// placed is a prompt whose tokens are known, and where the pilot's parts stand in it.
type placed struct {
	tenant, id string
	indexed    bool
	parts      []proxy.Part
	size       int // bytes of the body
	tokens     int
}

// Bounds of asking engines for tokens.
const (
	tokenizers = 4   // questions at a time
	mostAsking = 256 // prompts that wait
)

// maxPrompts bounds the prompts that are followed. The oldest are forgotten first.
const maxPrompts = 100_000

// newFleet makes a fleet of engines that serve the same models.
func newFleet(f *Follower, list []Engine) *fleet {
	fl := &fleet{
		f: f, list: list, models: sorted(list[0].Models), asking: make(chan *prompt, mostAsking),
		prompts: lru.New[string, placed](maxPrompts),
	}
	fl.group = residency.NewGroup(residency.Config{MaxRequests: maxPrompts, BlockSize: list[0].BlockSize, OnUpdate: fl.lost})
	for _, cfg := range list {
		e, err := newEngine(cfg, fl)
		if err != nil {
			f.opt.Log.Error("an engine cannot be followed", "engine", cfg.Name, "error", err)
			continue
		}
		fl.engines = append(fl.engines, e)
	}
	return fl
}

// start follows the engines until ctx ends, or stop is called.
func (fl *fleet) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var own sync.WaitGroup
	fl.stop = func() {
		cancel()
		own.Wait()
	}
	for _, e := range fl.engines {
		own.Go(func() { e.run(ctx) })
	}
	for range tokenizers {
		own.Go(func() { fl.tokenize(ctx) })
	}
}

// key names a prompt among those of all tenants.
func key(tenant, id string) string { return tenant + "\x00" + id }

// register enters a prompt's tokens, which have just become known.
func (fl *fleet) register(p placed, tokens []uint32, extra residency.Key) {
	p.tokens = len(tokens)
	k := key(p.tenant, p.id)
	fl.mu.Lock()
	fl.prompts.Put(k, p)
	fl.mu.Unlock()
	ints := make([]int, len(tokens))
	for i, t := range tokens {
		ints[i] = int(t)
	}
	fl.group.Register(k, ints, extra)
}

// lost passes on what prompts have lost, each to its own scopes.
func (fl *fleet) lost(updates []residency.Update) {
	for _, u := range updates {
		if u.Cleared != 0 {
			fl.f.counts.cleared.Add(1)
			fl.f.opt.Cleared(fl.models)
			fl.f.opt.Emptied(fl.models)
			continue
		}
		fl.mu.Lock()
		p, ok := fl.prompts.Get(u.RequestID)
		if ok && u.Lost {
			fl.prompts.Delete(u.RequestID)
		}
		fl.mu.Unlock()
		switch {
		case !ok:
		case u.Lost:
			fl.f.gone(p)
		default:
			fl.f.shrunk(p, u.Resident)
		}
	}
}

func (f *Follower) gone(p placed) {
	f.counts.lost.Add(1)
	f.opt.Left(p.tenant, p.id, 0)
	for _, part := range p.parts {
		f.opt.Lost(part.Scope, part.ID)
	}
	if p.indexed {
		f.opt.Indexed(p.tenant, p.id)
	}
}

// shrunk reports the parts that end behind the first resident tokens. Where a part stands among the tokens follows from where
// it stands among the bytes, as if all tokens had the same length.
func (f *Follower) shrunk(p placed, resident int) {
	f.counts.shrunk.Add(1)
	f.opt.Left(p.tenant, p.id, resident)
	if p.tokens == 0 {
		return
	}
	end := int(int64(resident) * int64(p.size) / int64(p.tokens)) // in bytes
	for _, part := range p.parts {
		if left := end - part.Start; left < part.Length || left <= 0 {
			f.opt.Shrunk(part.Scope, part.ID, max(left, 0)*part.Tokens/max(part.Length, 1))
		}
	}
}
