package holdback

import "time"

// Pass is a request that was let go. Done must be called. Its methods are safe for concurrent use; a nil Pass does nothing.
type Pass struct {
	gate   *Gate
	prompt Prompt

	// guarded by the gate's mu
	taken   []*prefix // by element of the chain
	uses    int       // the first of them, which are copies that it uses; the others it makes
	paged   bool
	held    bool // never changes after Enter
	sent    time.Time
	begun   time.Time // zero: First was not called
	settled bool      // what it makes is there, or will not come
	over    bool
}

// take enters a request that is sent now. The gate's mu is held.
func (p *Pass) take(now time.Time) {
	g := p.gate
	slots := g.slots()
	p.sent, p.paged = now, slots == 0
	if slots == 1 {
		return
	}
	p.taken = make([]*prefix, len(p.prompt.Chain))
	free, _ := g.shared(p.prompt.Chain, slots)
	p.uses = free
	for i, h := range p.prompt.Chain {
		e, ok := g.known.Get(h)
		if !ok {
			e = &prefix{}
			g.known.Put(h, e)
		}
		p.taken[i] = e
		switch {
		case i >= free:
			e.making++
		case !p.paged:
			e.busy++
		}
	}
}

// Held reports whether the request was held.
func (p *Pass) Held() bool { return p != nil && p.held }

// First reports that the answer has begun: the prompt is computed. Requests whose answers come in one piece need not call it. Calls
// after the first do nothing.
func (p *Pass) First() {
	if p == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.over || !p.begun.IsZero() {
		return
	}
	p.begun = time.Now()
	if made := len(p.taken) - p.uses; made >= g.need {
		mean(&g.pace, p.begun.Sub(p.sent).Seconds()/float64(made))
	}
	if p.paged {
		p.settle(true)
	} else {
		g.hurry(p)
	}
	g.release()
}

// Done reports that the answer has ended; computed, whether the engine has computed the prompt, which it has if the answer had begun;
// cached, how many of its tokens the engine says to have had in its cache, -1: it says nothing. Calls after the first do nothing.
func (p *Pass) Done(computed bool, cached int) {
	if p == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.over {
		return
	}
	p.over = true
	if !p.begun.IsZero() {
		mean(&g.answer, time.Since(p.begun).Seconds())
		computed = true
	} else if computed { // it came in one piece: what it saved is not known, but how long others waited
		mean(&g.answer, time.Since(p.sent).Seconds())
	}
	p.settle(computed)
	if computed && cached >= 0 {
		p.correct(cached)
	}
	if !p.paged {
		for _, e := range p.taken[:p.uses] {
			e.busy--
		}
	}
	p.taken = nil
	g.release()
}

// settle notes that what the request makes is there, or will not come. The gate's mu is held.
func (p *Pass) settle(made bool) {
	if p.settled {
		return
	}
	p.settled = true
	for _, e := range p.taken[p.uses:] {
		e.making--
		if made && (!p.paged || e.copies == 0) {
			e.copies++
		}
	}
}

// correct notes that copies which the request was to use were not there: only those that requests under way have are, and its own. A
// cache drops what it does not say. Tokens are estimates, so only what is clearly less counts. The gate's mu is held.
func (p *Pass) correct(cached int) {
	if 2*cached >= p.uses*pieceTokens {
		return
	}
	for _, e := range p.taken[min(cached/pieceTokens, p.uses):p.uses] {
		e.copies = max(e.busy, 1)
	}
}

// hurry bounds the waits for an answer that has begun on a slot. A request waits at most as long as computing the prefix for all waiting
// requests would take now, which is what waiting saves. So at worst it takes twice as long as without waiting. g.mu is held.
func (g *Gate) hurry(p *Pass) {
	if g.pace == 0 {
		return
	}
	now := time.Now()
	slots := g.slots()
	for _, w := range g.held {
		both := 0
		for both < min(len(w.pass.prompt.Chain), len(p.prompt.Chain)) && w.pass.prompt.Chain[both] == p.prompt.Chain[both] {
			both++
		}
		free, _ := g.shared(w.pass.prompt.Chain, slots)
		if w.armed || both-free < g.need {
			continue
		}
		w.armed = true
		until := now.Add(time.Duration(g.work(both-free, len(g.held)) * float64(time.Second)))
		if until.Before(w.until) {
			w.until = until
			w.timer.Reset(until.Sub(now))
		}
	}
}

// mean moves a mean towards what was measured.
func mean(m *float64, measured float64) {
	if *m == 0 {
		*m = measured
		return
	}
	*m += (measured - *m) / 8
}
