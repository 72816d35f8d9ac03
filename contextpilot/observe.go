package contextpilot

import (
	"fmt"
)

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

// observe reports whether the event was applied, and whether it was new: an answer may be reported by the
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
// from behind the head. If the event has the prompt's length, in the engine's tokens, they are taken as a part of it;
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

// EventKind says what happened to a request, or to everything, in the engine's cache.
type EventKind uint8

const (
	// Served: the engine has answered the request. Tokens is the number of prompt tokens it took from its
	// cache (as reported in its usage), Output the number of tokens it generated; both may be 0 if unknown. With
	// CachedKnown, a number clearly below what the index was sure of corrects the index, see [Pilot.Observe].
	Served EventKind = iota + 1
	// Shrunk: of the request's prompt, and the answer behind it, only the first Tokens tokens are still resident.
	Shrunk
	// Gone: nothing of the request's own prompt is resident any more. For a request that was never Served it
	// means that the request did not reach the engine: it is taken back as if it had never been planned.
	Gone
	// Cleared: the engine dropped its whole cache. Request is ignored.
	Cleared
	// Moved: what the request's prompt holds behind its first Tokens tokens lies in Tier now, from where the engine
	// loads it when it is sent again.
	Moved
)

// String returns the kind in lower case.
func (k EventKind) String() string {
	names := [...]string{"served", "shrunk", "gone", "cleared", "moved"}
	if i := int(k) - 1; i >= 0 && i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// Event is one report about an engine's cache; engines make them, [Pilot.Observe] takes them.
type Event struct {
	Kind    EventKind
	Scope   Scope
	Request string // request ID as in [Plan.RequestID]
	Tokens  int    // Served: prompt tokens read from cache; Shrunk: tokens of prompt and answer still resident; Moved: those that stay
	Output  int    // Served: tokens generated, which the engine caches behind the prompt
	Tier    string // Moved: name of the tier, see Config.LoadCost; "" is the engine's own memory

	// CachedKnown, of Served: the engine reported Tokens for a prompt that it looked up in its cache: 0 then
	// means that nothing was there. Without it, 0 Tokens say nothing.
	CachedKnown bool
	// Prompt, of Served, Shrunk and Moved, is the length of the whole prompt as the engine counted it, in tokens; 0: unknown.
	// Of Served, as far as it is not what was planned, Tokens may be off by as much, or by an eighth if that is more, and
	// correct the index only beyond that. Of Shrunk and Moved, Tokens are taken as that part of what was planned, the
	// request's head included ([Request.HeadTokens]), and what exceeds it as tokens of the answer, which are not converted;
	// without it they must be tokens of the pilot's own Tokenizer.
	Prompt int
}

// correct compares an answer with what the index was sure of, and takes out what it contradicts. The scope's lock is held.
//
// What the engine counts otherwise than the plan, the plan's head and templates included, it may count otherwise in the prompt's
// beginning already, and lengths of blocks are estimates as a rule: an eighth of the prompt is always allowed for. An engine counts whole
// blocks and computes the last token always. None of this is a contradiction. What the prompts of a scope begin with (Request.HeadTokens)
// is not followed in the index: an engine that lost it, too, is believed to hold what hangs at the root until an answer shows that.
func (p *Pilot) correct(sc *scope, ev Event) {
	planned, live := sc.tree.Resident(ev.Request)
	if !live {
		return
	}
	head := max(sc.head, 0)
	slack := (head + planned) / 8
	if ev.Prompt > 0 {
		slack = max(slack, ev.Prompt-head-planned, head+planned-ev.Prompt)
	}
	tokens := ev.Tokens - head + sc.block + slack
	if contradicted, shortened := sc.tree.Contradict(ev.Request, max(tokens, 0)); contradicted {
		p.stats.contradicted.Add(1)
		p.stats.shortened.Add(int64(shortened))
	}
}
