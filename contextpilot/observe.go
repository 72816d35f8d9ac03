package contextpilot

// Observe applies what engines report and returns how many events concerned a live request. Unknown requests are
// counted and ignored. Gone and Shrunk cost O(h) for a path of h blocks.
//
// An eviction never touches de-duplication, which looks at the messages being sent and not at the cache: a
// reference to an evicted block is slower, not wrong.
//
// A Served event with CachedKnown corrects the index where the engine reports no evictions, or some were missed (spec
// engines.md §5.4): if the request found more than one engine block less than answered requests had surely left
// when it was planned, what such requests hold behind the blocks it did not find is taken to be gone. The request's own
// path stays, since it has just been computed; so does what was in flight meanwhile, which may only not have
// been computed in time. Requests answered by several caches under one [Scope] correct each other wrongly.
func (p *Pilot) Observe(events ...Event) (applied int) {
	for _, ev := range events {
		ok, fresh := p.observe(ev)
		if ok {
			applied++
		}
		p.stats.observed(ev, ok, fresh)
		if p.cfg.Recorder != nil {
			p.cfg.Recorder.Observed(ev, ok)
		}
	}
	return applied
}

// Sink returns Observe for an engine that serves one scope and does not know it: the scope is filled in.
func (p *Pilot) Sink(scope Scope) func(events ...Event) {
	return func(events ...Event) {
		for _, ev := range events {
			ev.Scope = scope
			p.Observe(ev)
		}
	}
}

// observe reports whether the event was applied, and whether it told something new: an answer may be reported by the
// engine and by a wrapper around it.
func (p *Pilot) observe(ev Event) (ok, fresh bool) {
	sc := p.findScope(ev.Scope)
	if sc == nil {
		return false, false
	}
	switch ev.Kind {
	case Served:
		return p.served(sc, ev)
	case Shrunk:
		sc.mu.Lock()
		defer sc.mu.Unlock()
		ok = sc.tree.Shrink(ev.Request, sc.behindHead(ev))
		sc.shrunk()
		return ok, ok
	case Moved:
		sc.mu.Lock()
		defer sc.mu.Unlock()
		ok = sc.tree.Move(ev.Request, sc.behindHead(ev), p.tiers.number(ev.Tier))
		return ok, ok
	case Gone:
		ok = sc.gone(ev.Request)
		return ok, ok
	case Cleared:
		sc.mu.Lock()
		defer sc.mu.Unlock()
		sc.clear()
		return true, true
	}
	return false, false
}

// behindHead returns how far an event's Tokens reach in the index: they count from the beginning of the prompt, the index
// from behind the head. If the event tells the prompt's length, in the engine's tokens, they are taken as a part of it;
// what is more is of the answer, which the index counts as the engine does.
func (sc *scope) behindHead(ev Event) int {
	head, tokens := max(sc.head, 0), ev.Tokens
	if planned := sc.tree.Length(ev.Request); ev.Prompt > 0 && planned > 0 {
		answer := max(tokens-ev.Prompt, 0)
		tokens = int(float64(tokens-answer)*float64(head+planned)/float64(ev.Prompt)) + answer
	}
	return tokens - head
}

func (p *Pilot) served(sc *scope, ev Event) (ok, fresh bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if ev.CachedKnown {
		p.correct(sc, ev)
	}
	fresh, ok = sc.tree.Serve(ev.Request)
	if fresh && ev.Output > 0 {
		sc.tree.Extend(ev.Request, int(tokenCount(ev.Output)))
	}
	sc.count()
	return ok, fresh
}

// gone takes a request out, and reports whether it was there.
func (sc *scope) gone(request string) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	ok := sc.tree.Remove(request)
	sc.shrunk()
	return ok
}
