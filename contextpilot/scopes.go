package contextpilot

import (
	"cmp"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// Scopes returns the scopes that have an index, the one that was planned for last first.
func (p *Pilot) Scopes() []Scope {
	type used struct {
		id Scope
		at int64
	}
	p.mu.RLock()
	all := make([]used, 0, len(p.scopes))
	for id, sc := range p.scopes {
		all = append(all, used{id, sc.used.Load()})
	}
	p.mu.RUnlock()
	slices.SortFunc(all, func(a, b used) int {
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.id.Tenant, b.id.Tenant), cmp.Compare(a.id.Model, b.id.Model),
			cmp.Compare(a.id.Replica, b.id.Replica))
	})
	out := make([]Scope, len(all))
	for i := range all {
		out[i] = all[i].id
	}
	return out
}

// View calls look with what a scope's index holds, and returns false without a call if the scope has none. It changes
// nothing. Requests of the scope wait meanwhile, so look must be short; it must not call the pilot or keep the View.
func (p *Pilot) View(scope Scope, look func(View)) bool {
	sc := p.findScope(scope)
	if sc == nil {
		return false
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	look(View{t: sc.tree, tiers: sc.tiers})
	return true
}

// scope returns the index of a cache, making it if it is new; another one may go for it, see [Config.MaxScopes].
func (p *Pilot) scope(id Scope, now time.Time) *scope {
	if sc := p.findScope(id); sc != nil {
		if age := now.Sub(sc.lastUse()); age >= 0 && age < time.Second { // clocks go back
			return sc
		}
	}
	sc, dropped := p.useScope(id, now)
	if dropped != nil {
		p.stats.scopesDropped.Add(1)
		p.stats.shed.Add(int64(dropped.leave()))
	}
	return sc
}

func (p *Pilot) findScope(id Scope) *scope {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.scopes[id]
}

// useScope makes a scope the one of its tenant that was used last. dropped, if not nil, is not in the table any more.
func (p *Pilot) useScope(id Scope, now time.Time) (sc, dropped *scope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sc = p.scopes[id]
	if sc == nil {
		sc = newScope(p)
		p.addScope(id, sc)
	}
	sc.used.Store(now.UnixNano())
	p.tenants[id.Tenant].Get(id)
	if len(p.scopes) > p.cfg.MaxScopes {
		dropped = p.leastUsed(id.Tenant)
		p.removeScope(dropped)
	}
	return sc, dropped
}

// leastUsed returns the scope that goes for a new one of a tenant: the tenant's own if it has more than its share, else one of
// the tenant that has most, in O(tenants). p.mu is held.
func (p *Pilot) leastUsed(tenant string) *scope {
	own := p.tenants[tenant]
	if own.Len() > max(p.cfg.MaxScopes/len(p.tenants), 1) {
		_, sc, _ := own.Oldest()
		return sc
	}
	var most *lru.Cache[Scope, *scope]
	var oldest *scope // of these
	for _, l := range p.tenants {
		if l == own {
			continue
		}
		_, sc, _ := l.Oldest()
		if most == nil || l.Len() > most.Len() || l.Len() == most.Len() && sc.used.Load() < oldest.used.Load() {
			most, oldest = l, sc
		}
	}
	return oldest
}

// addScope enters a new scope. p.mu is held.
func (p *Pilot) addScope(id Scope, sc *scope) {
	l := p.tenants[id.Tenant]
	if l == nil {
		l = lru.With(lru.Options[Scope, *scope]{})
		p.tenants[id.Tenant] = l
	}
	sc.id = id
	l.Put(id, sc)
	p.scopes[id] = sc
}

// removeScope takes a scope out of the table; it must leave when p.mu, which is held, is free again.
func (p *Pilot) removeScope(sc *scope) {
	delete(p.scopes, sc.id)
	l := p.tenants[sc.id.Tenant]
	l.Delete(sc.id)
	if l.Len() == 0 {
		delete(p.tenants, sc.id.Tenant)
	}
}

// dropScopes forgets the scopes for which gone is true, and returns their number.
func (p *Pilot) dropScopes(gone func(Scope) bool) int {
	var dropped []*scope
	p.mu.Lock()
	for id, sc := range p.scopes {
		if gone(id) {
			p.removeScope(sc)
			dropped = append(dropped, sc)
		}
	}
	p.mu.Unlock()
	for _, sc := range dropped {
		p.stats.shed.Add(int64(sc.leave()))
	}
	return len(dropped)
}

// DropReplica forgets what is known of the cache of a replica that is gone, or has lost it: its scopes of all models and
// tenants. A [Position] stays as good: what a conversation has shown does not depend on a cache. It returns the number of
// scopes. A request that is being planned meanwhile is still planned with what was known.
func (p *Pilot) DropReplica(name string) (scopes int) {
	return p.dropScopes(func(id Scope) bool { return id.Replica == name })
}

// DropTenant forgets all that is known of a tenant: its scopes of all models and replicas. It returns the number of scopes. A
// request that is being planned meanwhile is still planned with what was known.
func (p *Pilot) DropTenant(tenant string) (scopes int) {
	return p.dropScopes(func(id Scope) bool { return id.Tenant == tenant })
}

// shed drops requests while all scopes together have more than [Config.MaxRequests], or more blocks than so many may have on
// average. To look for them is for many plans: a thousandth of the bound goes at once.
func (p *Pilot) shed() {
	p.shedPast()
	limit := p.cfg.MaxRequests
	for limit > 0 {
		size := func(sc *scope) int64 { return sc.live.Load() }
		switch live := p.live.Load(); {
		case live > int64(limit):
		case live > 1 && p.nodes.Load() > nodesPerRequest*int64(limit):
			size = func(sc *scope) int64 { return sc.nodes.Load() }
		default:
			return
		}
		sc := p.largest(size)
		if sc == nil {
			return // others were faster
		}
		p.stats.shed.Add(int64(sc.shed(max(limit/1024, 1))))
	}
}

// shedPast makes policies forget while they remember more blocks than [Config.MaxHistory].
func (p *Pilot) shedPast() {
	limit := p.cfg.MaxHistory
	for limit > 0 && p.past.Load() > int64(limit) {
		sc := p.largest(func(sc *scope) int64 { return sc.past.Load() })
		if sc == nil {
			return // others were faster
		}
		sc.forgetPast(max(limit/1024, 1))
	}
}

// nodesPerRequest is how many nodes of the index a live request may have on average, at [Config.MaxRequests].
const nodesPerRequest = 64

// largest returns the largest scope of the tenant whose scopes are largest in total; nil if there is none. O(scopes).
func (p *Pilot) largest(size func(*scope) int64) (largest *scope) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	most := int64(0)
	for _, l := range p.tenants {
		all := int64(0)
		var own *scope
		for _, sc := range l.All() {
			all += size(sc)
			if own == nil || size(sc) > size(own) {
				own = sc
			}
		}
		if all > most {
			most, largest = all, own
		}
	}
	return largest
}
