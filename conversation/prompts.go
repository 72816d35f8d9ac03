package conversation

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/evict"
)

// newID names a prompt.
func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return "req-" + hex.EncodeToString(b[:])
}

// promptID is the ID of a prompt that is about to be planned: the request's for the first one.
func (x *request) promptID() string {
	if x.c.Request == "" || len(x.out.Plans) > 0 {
		return newID()
	}
	return x.c.Request
}

// remember notes in which scope a request of so many blocks was planned, for reports of evictions.
func (e *Engine) remember(id string, scope contextpilot.Scope, blocks int) {
	t := e.tenant(scope.Tenant)
	defer e.opt.Budget.Settle() // without the lock
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prompts.Put(id, prompted{scope: scope, bytes: promptBytes + len(id) + len(scope.Replica) + blockBytes*blocks})
}

// scopeOf returns the scope in which a prompt was planned.
func (e *Engine) scopeOf(tenant, id string) (scope contextpilot.Scope, ok bool) {
	t := e.known(tenant)
	if t == nil {
		return scope, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.prompts.Get(id)
	return found.scope, ok
}

// forgetPrompt removes a prompt that has left the cache, and returns the scope in which it was planned.
func (e *Engine) forgetPrompt(tenant, id string) (scope contextpilot.Scope, ok bool) {
	t := e.known(tenant)
	if t == nil {
		return scope, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.prompts.Peek(id)
	t.prompts.Delete(id)
	return found.scope, ok
}

// dropPrompt is for the budget: the prompt leaves the pilot's index, too.
func (e *Engine) dropPrompt(t *tenant) int {
	t.mu.Lock()
	id, old, ok := t.prompts.DropOldest()
	t.mu.Unlock()
	if !ok {
		return 0
	}
	e.gone(old.scope, id)
	return old.bytes
}

// gone takes a prompt out of the pilot's index.
func (e *Engine) gone(scope contextpilot.Scope, id string) {
	e.pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Scope: scope, Request: id})
	if e.opt.Journal != nil && !isDryRun(scope) {
		e.opt.Journal.Gone(scope, id)
	}
}

// Knows reports whether a prompt of a tenant was planned under an ID, and is not known to have left the engine's cache.
func (e *Engine) Knows(tenant, id string) bool {
	_, ok := e.scopeOf(tenant, id)
	return ok
}

// named finds the planned prompt that an engine's name of it stands for.
func (e *Engine) named(tenant, id string) (known string, ok bool) {
	return evict.Match(id, func(id string) bool { return e.Knows(tenant, id) })
}

// Evicted takes IDs of a tenant's prompts that are not in the engine's cache any more, as the engine names them. Those that are not
// known do no harm.
func (e *Engine) Evicted(tenant string, ids ...string) {
	for _, id := range ids {
		if known, ok := e.named(tenant, id); ok {
			e.Ended(tenant, known)
		}
	}
}

// Ended is [Engine.Evicted] for an ID of the engine's own.
func (e *Engine) Ended(tenant, id string) {
	if scope, ok := e.forgetPrompt(tenant, id); ok {
		e.gone(scope, id)
	}
}

// Lost says that nothing of a planned prompt is in any cache any more.
func (e *Engine) Lost(scope contextpilot.Scope, id string) {
	e.forgetPrompt(scope.Tenant, id)
	e.gone(scope, id)
}

// Shrunk says that of a planned prompt only the first tokens are left, by the pilot's count.
func (e *Engine) Shrunk(scope contextpilot.Scope, id string, tokens int) {
	e.pilot.Observe(contextpilot.Event{Kind: contextpilot.Shrunk, Scope: scope, Request: id, Tokens: tokens})
}

// Cut takes the ID of a tenant's request, as the engine names it, of which only the first tokens are cached. Where the documents
// begin in the engine's count is not known: what stands in front of them is taken for a part of them.
func (e *Engine) Cut(tenant, id string, tokens int) {
	known, ok := e.named(tenant, id)
	if !ok {
		return
	}
	if scope, ok := e.scopeOf(tenant, known); ok {
		e.Shrunk(scope, known, tokens)
	}
}
