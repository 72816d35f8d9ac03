package holdback

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// ErrReset ends the wait of a request when its engine has lost what it computed, see [Gate.Reset]. The request may be sent elsewhere.
var ErrReset = errors.New("the engine's cache was lost while the request was held")

// Prompt is what a [Gate] must know of a request.
type Prompt struct {
	Chain []uint64 // of its text, see [Chain]; empty: it is not held
	// Found and Left are tokens that the engine is expected to find, or load, and to compute, by an index of its cache. Both 0: not
	// known. They decide the order in which requests are let go, and Found keeps a request from being held in front of a paged cache.
	Found, Left int
}

// loads reports whether a request mostly loads, or finds, what it needs. known is false if nothing is expected.
func (p *Prompt) loads() (loads, known bool) { return p.Found > p.Left, p.Found > 0 || p.Left > 0 }

// Gate holds requests back in front of one engine. Safe for concurrent use. It has no goroutine; a timer runs for each request that
// is held. Entering costs a look at each piece of the prompt and at each request held.
type Gate struct {
	opt  Options
	need int // pieces that must be computed by others

	mu     sync.Mutex
	known  *lru.Cache[uint64, *prefix] // by element of a chain
	held   []*waiter                   // in the order of arrival
	pace   float64                     // seconds for each piece of a prompt that is computed, a mean; 0: not known
	answer float64                     // seconds from the first piece of an answer to its end, a mean; 0: not known
	stats  Stats
	onGo   func(Prompt) // for tests: called when a held request is let go, with mu held; nil: nothing is called
}

// prefix is one beginning of prompts; guarded by the gate's mu.
type prefix struct {
	copies int // computed, as far as is known; at most 1 in a paged cache
	busy   int // of them, those that requests under way use; 0 in a paged cache
	making int // requests under way that compute it
}

// free reports whether a request that is sent now finds the prefix. slots is 0 for a paged cache.
func (p *prefix) free(slots int) bool { return p.copies > p.busy || slots > 0 && p.copies >= slots }

// waiter is a request that is held.
type waiter struct {
	pass  *Pass
	ready chan struct{} // closed when it may go, or err is set
	err   error
	since time.Time
	until time.Time // when it goes on in any case
	timer *time.Timer
	armed bool // until counts from an answer's first piece
}

// Stats counts what a [Gate] has done.
type Stats struct {
	Held    int64         // requests that were held
	Served  int64         // of them, those that went on because what they waited for was there, or did not come
	Late    int64         // those whose wait reached a bound
	Gone    int64         // those whose context ended
	Reset   int64         // those whose engine lost its cache
	Waited  time.Duration // all of them together, until now for those that still wait
	Waiting int           // held now
}

// New returns a Gate. An error names the field at fault and its value.
func New(o Options) (*Gate, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Gate{opt: o, need: max((o.Tokens+pieceTokens-1)/pieceTokens, 1), known: lru.New[uint64, *prefix](maxKnown)}, nil
}

// On reports whether requests may be held now. If not, a Prompt needs no Chain.
func (g *Gate) On() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.slots() != 1
}

// Enter lets a request go, at once or when what it waits for has come, and at the latest after [Options].Longest. Its Pass must be
// ended by Done. The error is that of ctx, or [ErrReset]; there is no Pass then.
func (g *Gate) Enter(ctx context.Context, p Prompt) (*Pass, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	pass := &Pass{gate: g, prompt: p}
	w := g.enter(pass)
	if w == nil {
		return pass, nil
	}
	select {
	case <-w.ready:
		pass.held = true
	case <-ctx.Done():
		g.leave(w, ctx.Err())
	}
	if w.err != nil { // ready is closed
		return nil, w.err
	}
	return pass, nil
}

// enter lets a request go, and returns nil, or has it wait.
func (g *Gate) enter(pass *Pass) *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	w := &waiter{pass: pass, ready: make(chan struct{}), since: now, until: now.Add(g.opt.Longest)}
	if len(g.held) == maxHeld || !g.holds(w) {
		pass.take(now)
		return nil
	}
	g.held = append(g.held, w)
	g.stats.Held++
	w.timer = time.AfterFunc(g.opt.Longest, func() { g.expire(w) })
	return w
}

// slots returns the number of slots, 0 for a paged cache.
func (g *Gate) slots() int {
	if g.opt.Slots == nil {
		return 0
	}
	return max(g.opt.Slots(), 1)
}

// shared returns how many first pieces of a prompt are free, and how many requests under way have, or are going to have. g.mu is held.
func (g *Gate) shared(chain []uint64, slots int) (free, under int) {
	for i, h := range chain {
		p, ok := g.known.Peek(h)
		if !ok {
			break
		}
		if p.free(slots) && free == i {
			free = i + 1
		}
		if p.making > 0 || p.busy > 0 {
			under = i + 1
		}
	}
	return free, under
}

// holds reports whether a request is held now. g.mu is held.
func (g *Gate) holds(w *waiter) bool {
	slots := g.slots()
	if slots == 1 {
		return false
	}
	chain := w.pass.prompt.Chain
	free, under := g.shared(chain, slots)
	if slots == 0 {
		free = max(free, w.pass.prompt.Found/pieceTokens)
	}
	beyond := under - free
	if beyond < g.need || slots > 0 && 10*under <= len(chain) { // llama.cpp takes a slot that has more than a tenth of a prompt
		return false
	}
	// Answers are waited for one after the other. That must not take longer than the work that it saves, nor, with the prefill
	// before it, longer than a request may be held: it would wait in vain.
	ahead := g.ahead(w, free+g.need-1)
	wait := g.pace * float64(beyond)
	if slots > 0 {
		wait += float64(ahead+1) * g.answer
	}
	if wait > g.opt.Longest.Seconds() {
		return false
	}
	return slots == 0 || g.pace == 0 && g.answer == 0 || float64(ahead+1)*g.answer <= g.work(beyond, ahead+1)
}

// ahead counts the requests held before w whose prompts are the same up to the piece at. g.mu is held.
func (g *Gate) ahead(w *waiter, at int) (n int) {
	for _, other := range g.held {
		if other == w {
			break
		}
		if c := other.pass.prompt.Chain; at < len(c) && c[at] == w.pass.prompt.Chain[at] {
			n++
		}
	}
	return n
}

// work returns the seconds that n requests take to compute so many pieces each, if all are sent at once. One slot has the pieces; the
// engine computes as many requests at the same time as it has other slots. g.mu is held.
func (g *Gate) work(pieces, n int) float64 {
	return g.pace * float64(pieces) * float64(min(n, g.slots()-1))
}

// release lets all go that need not wait any longer. The first come goes first, and then those that mostly load and those that mostly
// compute take turns, so that the engine does both at the same time. g.mu is held.
func (g *Gate) release() {
	var before *Prompt
	for {
		i := g.next(before)
		if i < 0 {
			return
		}
		before = &g.held[i].pass.prompt
		g.stats.Served++
		g.let(g.held[i], nil)
	}
}

// next returns the first request that need not wait, if possible of the other kind than the one before, -1 if all must. g.mu is held.
func (g *Gate) next(before *Prompt) int {
	first := -1
	for i, w := range g.held {
		if g.holds(w) {
			continue
		}
		if before == nil {
			return i
		}
		if first < 0 {
			first = i
		}
		was, ok := before.loads()
		if is, known := w.pass.prompt.loads(); ok && known && is != was {
			return i
		}
	}
	return first
}

// let ends the wait of a request. g.mu is held.
func (g *Gate) let(w *waiter, err error) {
	now := time.Now()
	g.held = slices.DeleteFunc(g.held, func(x *waiter) bool { return x == w })
	g.stats.Waited += now.Sub(w.since)
	w.timer.Stop()
	w.err = err
	if err == nil {
		w.pass.take(now)
		if g.onGo != nil {
			g.onGo(w.pass.prompt)
		}
	}
	close(w.ready)
}

// expire lets a request go whose wait has reached its bound.
func (g *Gate) expire(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(g.held, w) {
		g.stats.Late++
		g.let(w, nil)
	}
}

// leave ends the wait of a request whose context has ended. One that was let go meanwhile is taken back.
func (g *Gate) leave(w *waiter, err error) {
	g.mu.Lock()
	waits := slices.Contains(g.held, w)
	if waits {
		g.stats.Gone++
		g.let(w, err)
	}
	g.mu.Unlock()
	if !waits && w.err == nil {
		w.pass.Done(false, -1)
		w.err = err
	}
}

// Reset forgets what the engine has computed, and ends all waits with [ErrReset]: it is down, or was restarted.
func (g *Gate) Reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = lru.New[uint64, *prefix](maxKnown)
	for len(g.held) > 0 {
		g.stats.Reset++
		g.let(g.held[0], ErrReset)
	}
}

// Stats returns the counters.
func (g *Gate) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stats
	now := time.Now()
	for _, w := range g.held {
		s.Waited += now.Sub(w.since)
	}
	s.Waiting = len(g.held)
	return s
}
