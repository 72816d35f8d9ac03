package engines

import (
	"context"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Warming is what is computed ahead of one request. Its methods may be called from several goroutines, and none returns an
// error.
type Warming struct {
	w     *Warmer
	ctx   context.Context // of the request
	req   contextpilot.Request
	build func(*contextpilot.Plan) Request

	head  *warmup // nil: none
	start headKey // of the head's fixed messages
	leave func()  // gives the head up

	mu      sync.Mutex
	over    bool     // Ready or Cancel was called
	turn    int      // of the latest call of Guess
	planned int      // of the latest guess that was acted upon
	guesses []*guess // under way; each begins with the one before it
}

// guess is a warm-up with blocks; guarded by the Warming's mu.
type guess struct {
	warmup
	plan  contextpilot.Plan
	items []sentBlock
	parts []part
	sent  int  // parts that were given to the engine
	over  bool // it has ended, or was given up
	leave func()
}

// part is one request of a guess. The last has all blocks and the question.
type part struct {
	req    Request
	blocks int
}

// sentBlock is a block that a plan sends in full.
type sentBlock struct{ label, text string }

// Begin starts to compute what stands in front of a request's blocks, if that is not in the engine's cache, and returns at
// once. The arguments are those of [Warmer.Retrieve]. Ready or Cancel must follow, unless ctx ends soon anyway.
//
//	warming := warmer.Begin(ctx, request, build)
//	request.Blocks = search(...)                         // takes its time, and may call warming.Guess
//	plan := pilot.Plan(request)
//	warming.Ready(&plan)
//	answer, err := engine.Generate(ctx, build(&plan), onText)
func (w *Warmer) Begin(ctx context.Context, req contextpilot.Request, build func(*contextpilot.Plan) Request) *Warming {
	x := &Warming{w: w, ctx: ctx, req: req, build: build}
	x.req.Blocks = nil
	x.head, x.start, x.leave = w.warmHead(ctx, &x.req, build)
	return x
}

// Guess starts to compute blocks that will likely be retrieved, best first, behind the head and in the order that the pilot
// chooses, [WarmerOptions].Part tokens at a time, and in the end the question. A later guess takes the place of an earlier
// one, or goes on behind it where that is its beginning. It plans, and does not wait for the engine. Behind a history nothing
// is guessed: there the blocks depend on the conversation, which a guess must not change.
func (x *Warming) Guess(blocks []contextpilot.Block) {
	turn, ok := x.begin(blocks)
	if !ok {
		return
	}
	req := x.req
	req.ID, req.Session, req.Blocks = "", "", blocks
	if limit := x.w.opt.MaxGuess; req.Budget <= 0 || req.Budget > limit {
		req.Budget = limit
	}
	if x.missing(req) < x.w.opt.MinTokens {
		x.w.count.skipped.Add(1)
		x.dropOthers(turn, blocks)
		return
	}
	g := &guess{plan: x.w.opt.Pilot.Plan(req)}
	started := false
	defer func() {
		if !started { // also if build panics
			x.w.takeBack(g)
		}
	}()
	resident := g.plan.Prefix.Blocks
	g.plan.Session = x.req.Session
	g.items = sentBlocks(&g.plan)
	g.parts = x.w.parts(x.build(&g.plan), &g.plan, resident)
	var wrong []*guess
	wrong, started = x.take(turn, g)
	x.w.takeBack(wrong...)
}

// begin numbers a call of Guess.
func (x *Warming) begin(blocks []contextpilot.Block) (turn int, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || len(blocks) == 0 || len(x.req.Prior) > 0 || x.w.opt.MaxGuess < 0 || x.ctx.Err() != nil {
		return 0, false
	}
	x.turn++
	return x.turn, true
}

// missing returns the tokens of a guess's blocks that are not resident, nor being computed.
func (x *Warming) missing(req contextpilot.Request) int {
	req.HeadTokens, req.Query = 0, ""
	m := x.w.opt.Pilot.Match(req)
	return m.Prompt - m.Tokens
}

// dropOthers gives up guesses that a later one of these blocks, which is not sent, contradicts: neither has all blocks of the
// other.
func (x *Warming) dropOthers(turn int, blocks []contextpilot.Block) {
	x.mu.Lock()
	var wrong []*guess
	if turn > x.planned {
		x.planned = turn
		wrong = x.keep(func(g *guess) bool { return g.shares(blocks) })
	}
	x.mu.Unlock()
	x.w.takeBack(wrong...)
}

// shares reports whether a guess has all of the blocks, or they all of its.
func (g *guess) shares(blocks []contextpilot.Block) bool {
	both := 0
	for _, b := range blocks {
		if slices.ContainsFunc(g.items, func(item sentBlock) bool { return item.text == b.Text }) {
			both++
		}
	}
	return both == len(blocks) || both == len(g.items)
}

// take lets a guess take its place among the others, and starts it. It returns those that it makes wrong.
func (x *Warming) take(turn int, g *guess) (wrong []*guess, started bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || turn < x.planned {
		return nil, false
	}
	x.planned = turn
	wrong = x.keep(func(old *guess) bool { return startsWith(g.items, old.items) })
	g.after = x.head
	if n := len(x.guesses); n > 0 {
		g.after = &x.guesses[n-1].warmup
	}
	g.next = func() (Request, bool) { return x.next(g) }
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	if !x.w.start(x.ctx, &g.warmup, func(err error) { x.ended(g, err) }) {
		return wrong, false
	}
	g.leave = x.w.want(x.ctx, &g.warmup)
	x.guesses = append(x.guesses, g)
	return wrong, true
}

// keep gives up the guesses under way that are not right, and returns them. x.mu is held.
func (x *Warming) keep(right func(*guess) bool) (wrong []*guess) {
	x.guesses = slices.DeleteFunc(x.guesses, func(g *guess) bool {
		if right(g) {
			return false
		}
		g.over = true
		g.leave()
		wrong = append(wrong, g)
		return true
	})
	return wrong
}

// next gives the next part of a guess, as long as it is wanted.
func (x *Warming) next(g *guess) (req Request, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if g.over || x.over || g.sent == len(g.parts) {
		return req, false
	}
	g.sent++
	return g.parts[g.sent-1].req, true
}

// ended reports to the pilot how a guess came out, unless it was given up before.
func (x *Warming) ended(g *guess, err error) {
	x.mu.Lock()
	over := g.over
	g.over = true
	x.guesses = slices.DeleteFunc(x.guesses, func(other *guess) bool { return other == g })
	x.mu.Unlock()
	switch {
	case over:
	case err != nil:
		x.w.takeBack(g)
	default: // what an engine reports of the last part is not that of the whole
		x.w.opt.Pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: g.plan.Scope, Request: g.plan.RequestID})
	}
}

// takeBack reports to the pilot that guesses did not reach the engine, or not whole.
func (w *Warmer) takeBack(guesses ...*guess) {
	for _, g := range guesses {
		w.opt.Pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Scope: g.plan.Scope, Request: g.plan.RequestID})
	}
}

// Ready says how the real request will be sent, and is called before it is. Nothing more is sent ahead. What the engine
// computes at this moment is cancelled if it is not the beginning of the real request, so that the engine is free for it; what
// is right goes on: the engine does not begin it anew, but waits for it or shares it. With [WarmerOptions].Unshared, Ready waits
// for it instead, at most until ctx ends; otherwise it returns at once.
func (x *Warming) Ready(plan *contextpilot.Plan) {
	items := sentBlocks(plan)
	x.mu.Lock()
	x.over = true
	wrong := x.keep(func(g *guess) bool {
		return g.sent > 0 && startsWith(items, g.items[:g.parts[g.sent-1].blocks])
	})
	last := x.head
	for _, g := range x.guesses {
		last = &g.warmup
		if g.sent < len(g.parts) { // the others are not going to be sent
			g.over = true
			wrong = append(wrong, g)
		}
	}
	x.mu.Unlock()
	x.w.takeBack(wrong...)
	x.w.mu.Lock()
	x.w.known.Put(x.start, indexed)
	x.w.mu.Unlock()
	if !x.w.opt.Unshared || last == nil {
		return
	}
	select {
	case <-last.done:
	case <-x.ctx.Done():
	}
}

// Cancel ends what is computed ahead of a request that is not going to be sent. A head that others wait for goes on. After
// Ready, it ends what is still under way.
func (x *Warming) Cancel() {
	x.mu.Lock()
	x.over = true
	wrong := x.keep(func(*guess) bool { return false })
	x.mu.Unlock()
	x.w.takeBack(wrong...)
	x.leave()
}

// parts cuts a guess into requests. Its first blocks are resident, as far as is known.
func (w *Warmer) parts(req Request, plan *contextpilot.Plan, resident int) (parts []part) {
	sum := 0
	for n := range plan.Items {
		if n < resident {
			continue
		}
		b := plan.Block(plan.Items[n].Index)
		size := b.Tokens
		if size <= 0 {
			size = contextpilot.Estimate{}.Count(b.Text)
		}
		if sum > 0 && sum+size > w.opt.Part {
			if i, _, end := find(&req, plan, n-1); i >= 0 {
				parts = append(parts, part{asWarmup(asChat(upTo(req, i, end)), w.id()), n})
				sum = 0
			}
		}
		sum += size
	}
	return append(parts, part{asWarmup(req, plan.RequestID), len(plan.Items)})
}

// sentBlocks returns the blocks that a plan sends in full, in prompt order.
func sentBlocks(p *contextpilot.Plan) []sentBlock {
	blocks := make([]sentBlock, 0, len(p.Items))
	for _, it := range p.Items {
		if it.Ref == nil {
			blocks = append(blocks, sentBlock{it.Label, p.Block(it.Index).Text})
		}
	}
	return blocks
}

// startsWith reports whether list begins with prefix.
func startsWith(list, prefix []sentBlock) bool {
	return len(prefix) <= len(list) && slices.Equal(list[:len(prefix)], prefix)
}
