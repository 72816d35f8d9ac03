package residency

import (
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// Group is what several caches hold of the same requests: the data-parallel ranks of an engine, or engines behind one
// address, where it is not known which of them serves a request. Each cache has an [Index] of its own; a request is
// registered in all of them, and as resident as in the one that holds most of it. All methods are safe for concurrent use.
type Group struct {
	cfg Config

	mu     sync.Mutex // guards what follows; taken before an index's
	byName map[string]*Index
	caches []*Index
	known  *lru.Cache[string, struct{}] // requests that are registered and were not reported as lost
	outlet
}

// NewGroup returns a group without caches. cfg holds for each of them, but for OnUpdate, which is called with what
// requests have lost in all of them together: a request is Lost once no cache holds a block of it, and Cleared stands for
// a time at which all caches hold nothing.
func NewGroup(cfg Config) *Group {
	cfg = cfg.withDefaults()
	g := &Group{cfg: cfg, byName: make(map[string]*Index), known: lru.New[string, struct{}](cfg.MaxRequests)}
	g.outlet = outlet{mu: &g.mu, onUpdate: cfg.OnUpdate}
	return g
}

// Index returns the index of one cache, to be the sink of its publisher. One that is not known by this name is made: it knows
// no request that was registered before, so name the caches of an engine before its first request where that is possible.
func (g *Group) Index(name string) *Index {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x, ok := g.byName[name]; ok {
		return x
	}
	cfg := g.cfg
	cfg.OnUpdate = g.update
	x := New(cfg)
	g.byName[name] = x
	g.caches = append(slices.Clip(g.caches), x) // others may be walking over the old list
	return x
}

// Remove forgets a cache: what it held is lost, as far as no other cache holds it.
func (g *Group) Remove(name string) {
	g.mu.Lock()
	x, ok := g.byName[name]
	delete(g.byName, name)
	if ok {
		g.caches = slices.DeleteFunc(slices.Clone(g.caches), func(y *Index) bool { return y == x }) // as in Index
	}
	g.mu.Unlock()
	if ok && !x.empty() {
		x.Clear(kvevents.Disconnected)
	}
}

func (g *Group) all() []*Index {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.caches
}

// Register enters a request in all caches, see [Index.Register].
func (g *Group) Register(id string, tokens []int, extra Key) {
	g.mu.Lock()
	g.known.Put(id, struct{}{})
	caches := g.caches
	g.mu.Unlock()
	var kept *prompt
	for _, x := range caches {
		x.enlist(id, tokens, extra, &kept)
	}
}

// Served says that the request was answered, see [Index.Served].
func (g *Group) Served(id string) {
	for _, x := range g.all() {
		x.Served(id)
	}
}

// Aborted says that the request ended without an answer, see [Index.Aborted].
func (g *Group) Aborted(id string) {
	for _, x := range g.all() {
		x.Aborted(id)
	}
}

// Drop forgets a request.
func (g *Group) Drop(id string) {
	g.mu.Lock()
	g.known.Delete(id)
	g.mu.Unlock()
	g.drop(id)
}

func (g *Group) drop(id string) {
	for _, x := range g.all() {
		x.Drop(id)
	}
}

// Clear clears all caches, see [Index.Clear].
func (g *Group) Clear(cause kvevents.Cause) {
	for _, x := range g.all() {
		x.Clear(cause)
	}
}

// Resident returns how many of the request's tokens the cache that holds most of it has, and whether all caches are known
// to be followed without a gap.
func (g *Group) Resident(id string) (tokens int, complete bool) {
	caches := g.all()
	complete = len(caches) > 0
	for _, x := range caches {
		n, ok := x.Resident(id)
		tokens, complete = max(tokens, n), complete && ok
	}
	return tokens, complete
}

// Prefix returns how many tokens of a prompt are resident in the cache that holds most of it, see [Index.Prefix].
func (g *Group) Prefix(tokens []int, extra Key) int {
	most := 0
	for _, x := range g.all() {
		most = max(most, x.Prefix(tokens, extra))
	}
	return most
}

// BlockSize returns the tokens of a block; 0: it is not known, or caches differ in it.
func (g *Group) BlockSize() int {
	size := 0
	for _, x := range g.all() {
		switch n := x.geo.Load().size; {
		case n == 0:
		case size == 0:
			size = n
		case n != size:
			return 0
		}
	}
	return size
}

// Stats returns those of each cache, in the order in which they were made.
func (g *Group) Stats() []Stats {
	caches := g.all()
	out := make([]Stats, len(caches))
	for i, x := range caches {
		out[i] = x.Stats()
	}
	return out
}

// update merges what one of the caches reports with what the others hold, and passes it on.
func (g *Group) update(updates []Update) {
	for _, u := range updates {
		if u, ok := g.merge(u); ok {
			g.enter(u)
		}
	}
	g.deliver()
}

// enter queues an update. Two caches may lose the last of a request at the same time: it is reported once.
func (g *Group) enter(u Update) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u.Cleared == 0 {
		if _, ok := g.known.Get(u.RequestID); !ok {
			return
		}
		if u.Lost {
			g.known.Delete(u.RequestID)
		}
	}
	g.pending = append(g.pending, u)
}

// merge is false for what only one cache has lost all of.
func (g *Group) merge(u Update) (Update, bool) {
	caches := g.all()
	if u.Cleared != 0 {
		for _, x := range caches {
			if !x.empty() {
				return u, false
			}
		}
		return u, true
	}
	u.Resident = 0
	for _, x := range caches {
		tokens, held := x.holds(u.RequestID)
		u.Resident, u.Lost = max(u.Resident, tokens), u.Lost && !held
	}
	if u.Lost { // it may wait in caches that never had it
		g.drop(u.RequestID)
	}
	return u, true
}

// empty reports whether the cache is known to hold no block on the GPU.
func (x *Index) empty() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.entries {
		if e.gpu > 0 {
			return false
		}
	}
	return true
}

// holds returns how much of a request is resident, and whether it can still be reported as lost: it is registered, and
// some of its blocks were resident since.
func (x *Index) holds(id string) (tokens int, held bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s, ok := x.reqs.byID[id]
	if !ok {
		return 0, false
	}
	r := x.reqs.at(s)
	return int(r.blocks) * int(r.size), r.is(seen)
}
