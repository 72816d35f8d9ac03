package engines

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/holdback"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// RouterOptions configures a [Router]. Zero values are the recommended setup.
type RouterOptions struct {
	// Pilot has an index for each replica, in the scopes with its name as Replica. Required. Its Config.MaxScopes must be at
	// least the number of replicas × tenants × models.
	Pilot *contextpilot.Pilot
	// Window is the number of requests over which prefill is balanced; 0: 500. It begins anew when a replica comes or goes.
	Window int
	// MaxShare bounds the prefill tokens of a replica within any Window requests, as a multiple of the mean of all
	// replicas; 0: 1.15. Requests that are indivisible, and predictions that were wrong, can exceed it a little.
	MaxShare float64
	// Affinity is what a token that a replica has seen lately, but not in front of this prompt, is worth against one that
	// is computed now: documents that meet on one replica share prefixes later. 0: 0.3; negative: nothing.
	Affinity float64
	// Queue is what a token of prefill that waits before the request costs against one of its own; 0: 0.3; negative: nothing.
	Queue float64
	// Hold says when requests are held back.
	Hold HoldOptions
}

// Router chooses for each request a replica together with the order of its blocks: the best order differs from replica
// to replica, as their caches do, and so does what is left to compute. The idea of asking every replica's index first is
// that of prefix-aware gateways; those take the prompt as given.
//
// A replica costs
//
//	price × left + Queue × pending − Affinity × kept × max(0, familiar − resident)
//
// tokens: those left to compute in the order that is best there, those of prompts that wait before it, less what the
// meeting of familiar documents is worth, see [contextpilot.Match], where kept is the part of its last prompts that the cache
// has not lost, as far as it reports that. The price is the replica's share of the prefill lately, 1
// for the mean. The cheapest takes the request, unless it would exceed its
// share of prefill, see [RouterOptions.MaxShare]; if all would, the one that had least. A conversation's history is part
// of the prompt: its replica is cheaper by all of it, and loses it when it is busier than that is worth.
//
// Safe for concurrent use. It starts no goroutines, and calls neither the pilot nor an engine with its lock held. Routing
// costs one [contextpilot.Pilot.MatchReplicas] and one Plan.
type Router struct {
	opt RouterOptions
	now func() time.Time

	mu       sync.Mutex
	replicas []*replica // by name
	window   window
}

// replica is what the router knows of one; guarded by the router's mu.
type replica struct {
	name    string                       // never changes
	engine  Engine                       // never changes
	cancel  func()                       // never changes; ends the subscription to the engine's events
	gate    *holdback.Gate               // never changes, has a lock of its own; nil: nothing is held
	in      bool                         // it is one of the router's
	down    bool                         //
	pending int                          // prefill tokens of requests without their first token
	under   int                          // requests under way
	failed  int                          // requests in a row that it has failed
	rest    time.Time                    // until then it is given others' requests only if all rest; zero: it answers
	trial   bool                         // its rest is over, and the request that finds out is under way
	sent    *lru.Cache[string, followed] // by request ID
}

// followed is a request that was routed to a replica.
type followed struct {
	scope contextpilot.Scope
	share *share
}

// Errors of a [Router].
var (
	// ErrNoReplica: there is none, or none is up.
	ErrNoReplica = errors.New("no replica is up")
	// ErrUnknownReplica: no replica has that name.
	ErrUnknownReplica = errors.New("unknown replica")
)

// NewRouter returns a Router without replicas. An error names the option and its value.
func NewRouter(o RouterOptions) (*Router, error) {
	if o.Pilot == nil {
		return nil, errors.New("engines: RouterOptions.Pilot is nil")
	}
	if o.Window <= 0 {
		o.Window = 500
	}
	if o.MaxShare == 0 {
		o.MaxShare = 1.15
	}
	if !(o.MaxShare >= 1) { // also not a number
		return nil, fmt.Errorf("engines: RouterOptions.MaxShare %g: must be at least 1", o.MaxShare)
	}
	if err := o.Hold.check(); err != nil {
		return nil, err
	}
	o.Affinity, o.Queue = weight(o.Affinity, 0.3), weight(o.Queue, 0.3)
	r := &Router{opt: o, window: window{size: o.Window}, now: time.Now}
	r.window.reset()
	return r, nil
}

// weight returns v, def for 0, and 0 for less.
func weight(v, def float64) float64 {
	if v == 0 {
		return def
	}
	return max(v, 0)
}

// Add lets a replica take requests. engine may be nil for one that is only routed to. What it reports of the requests that
// were routed to it goes to the pilot, into the scopes that they were planned in, so the engine needs no other subscription. A name
// that is known already is an error. One that was removed may come back; it is taken to be empty.
func (r *Router) Add(name string, engine Engine) error { return r.add(name, engine, false) }

// AddDown is Add for a replica that takes no requests until [Router.SetUp] says that it is up.
func (r *Router) AddDown(name string, engine Engine) error { return r.add(name, engine, true) }

func (r *Router) add(name string, engine Engine, down bool) error {
	if name == "" {
		return errors.New("engines: replica without a name")
	}
	gate, err := r.opt.Hold.gate(engine)
	if err != nil {
		return fmt.Errorf("engines: RouterOptions.Hold: %w", err)
	}
	rep := &replica{name: name, engine: engine, down: down, cancel: func() {}, gate: gate, sent: lru.New[string, followed](maxFollowed)}
	if engine != nil {
		rep.cancel = engine.Subscribe(func(events ...contextpilot.Event) { r.observe(rep, events) })
	}
	if !r.insert(rep) {
		rep.cancel()
		return fmt.Errorf("engines: replica %q is known already", name)
	}
	return nil
}

// maxFollowed is the number of requests of a replica whose events can be passed to the pilot.
const maxFollowed = 200_000

func (r *Router) insert(rep *replica) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, known := r.find(rep.name)
	if known {
		return false
	}
	rep.in = true
	r.replicas = slices.Insert(r.replicas, i, rep)
	r.window.reset()
	return true
}

// find returns where a name is, or belongs. r.mu is held.
func (r *Router) find(name string) (i int, known bool) {
	return slices.BinarySearchFunc(r.replicas, name, func(rep *replica, name string) int { return strings.Compare(rep.name, name) })
}

// named returns the replica of that name, or [ErrUnknownReplica]. r.mu is held.
func (r *Router) named(name string) (*replica, error) {
	i, known := r.find(name)
	if !known {
		return nil, fmt.Errorf("engines: %w: %q", ErrUnknownReplica, name)
	}
	return r.replicas[i], nil
}

// Remove takes a replica out: no request is routed to it any more, those under way go on, and what is known of its cache is
// dropped. The error is [ErrUnknownReplica].
func (r *Router) Remove(name string) error {
	r.mu.Lock()
	rep, err := r.named(name)
	if err == nil {
		rep.in = false
		r.replicas = slices.DeleteFunc(r.replicas, func(x *replica) bool { return x == rep })
		r.window.reset()
	}
	r.mu.Unlock()
	if err != nil {
		return err
	}
	rep.cancel()
	r.forget(rep)
	return nil
}

// forget drops what is known of a replica's cache. What is held for it is sent elsewhere.
func (r *Router) forget(rep *replica) {
	r.opt.Pilot.DropReplica(rep.name)
	if rep.gate != nil {
		rep.gate.Reset()
	}
}

// SetUp says whether a replica is up; for health checks. One that goes down takes no requests, and what is known of its cache is
// dropped: it comes back empty. The error is [ErrUnknownReplica].
func (r *Router) SetUp(name string, up bool) error {
	r.mu.Lock()
	rep, err := r.named(name)
	lost := err == nil && r.setUp(rep, up)
	r.mu.Unlock()
	if lost {
		r.forget(rep)
	}
	return err
}

// setUp reports whether the replica's index must be dropped. r.mu is held.
func (r *Router) setUp(rep *replica, up bool) (lost bool) {
	if !rep.in || up == !rep.down {
		return false
	}
	rep.down, rep.failed, rep.rest, rep.trial = !up, 0, time.Time{}, false
	r.window.reset()
	return !up
}

// ReplicaState is what a [Router] knows of a replica.
type ReplicaState struct {
	Name    string
	Up      bool
	Pending int // prefill tokens of requests without their first token
	Under   int // requests under way
	Prefill int // tokens computed for the last [RouterOptions.Window] requests, or since a replica last came or went
	Hold    HoldStats
}

// Replicas returns the state of all replicas, by name.
func (r *Router) Replicas() []ReplicaState {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]ReplicaState, len(r.replicas))
	for i, rep := range r.replicas {
		out[i] = ReplicaState{Name: rep.name, Up: !rep.down, Pending: rep.pending, Under: rep.under, Prefill: r.window.of(rep)}
		if rep.gate != nil {
			h := rep.gate.Stats()
			out[i].Hold = HoldStats{Held: h.Held, Late: h.Late, Waited: h.Waited}
		}
	}
	return out
}

// Observe passes on what a replica's cache reported in another way than by its engine. Events need no scope. Those of requests that
// were not routed there are ignored. The error is [ErrUnknownReplica].
func (r *Router) Observe(name string, events ...contextpilot.Event) error {
	r.mu.Lock()
	rep, err := r.named(name)
	r.mu.Unlock()
	if err == nil {
		r.observe(rep, events)
	}
	return err
}

func (r *Router) observe(rep *replica, events []contextpilot.Event) {
	for _, ev := range events {
		scope, ok := r.scopeOf(rep, ev)
		switch {
		case !ok:
		case ev.Kind == contextpilot.Cleared: // of all its scopes
			r.forget(rep)
		default:
			ev.Scope = scope
			r.opt.Pilot.Observe(ev)
		}
	}
}

// scopeOf returns where an event belongs, and takes over what it says of the requests lately; false: it concerns
// nothing that is known.
func (r *Router) scopeOf(rep *replica, ev contextpilot.Event) (scope contextpilot.Scope, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ev.Kind == contextpilot.Cleared {
		r.window.lose(rep)
		return scope, rep.in
	}
	f, ok := rep.sent.Get(ev.Request)
	if !ok {
		return scope, false
	}
	switch ev.Kind {
	case contextpilot.Gone:
		rep.sent.Delete(ev.Request)
		r.window.keep(f.share, 0)
	case contextpilot.Shrunk:
		tokens := ev.Tokens
		if ev.Prompt > 0 { // in the engine's tokens, as the pilot takes it
			tokens = int(float64(tokens) * float64(f.share.prompt) / float64(ev.Prompt))
		}
		r.window.keep(f.share, tokens)
	}
	return f.scope, rep.in
}
