package residency

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// Defaults of [Config].
const (
	DefaultMaxRequests = 100_000
	DefaultMaxBlocks   = 4_000_000
	DefaultMaxOrphans  = 100_000
	DefaultMaxWaiting  = 16_000_000
	DefaultUnseen      = 64
)

// Config holds the settings of an [Index]; zero values stand for the defaults.
type Config struct {
	// Replica names the cache in updates.
	Replica string
	// OnUpdate is called with what requests lost, in order, one call at a time and never under a lock: it may call
	// the Index. It runs on the goroutine that applies events and should not block. Nil: updates are dropped.
	OnUpdate func([]Update)
	// MaxRequests bounds the registered requests; beyond it the one registered first is dropped.
	MaxRequests int
	// MaxBlocks bounds the blocks that are known: those of the engine, in all tiers, and those that requests wait for or
	// have lost. The latter may take half of what the engine's leave; beyond it the requests registered first are dropped.
	// Blocks of the engine beyond the bound are not entered, and the index is incomplete until it is cleared.
	MaxBlocks int
	// MaxOrphans bounds the blocks whose parent is not known.
	MaxOrphans int
	// MaxWaiting bounds the tokens of prompts that are kept because the engine's block size is not known yet; beyond it
	// the requests registered first are dropped.
	MaxWaiting int
	// Unseen is how many requests must have been answered in a row, without a block of theirs being stored, for
	// [Stats.Mismatch].
	Unseen int
	// BlockSize is how many tokens a block is taken to have until an event shows it; 0: requests wait for that with their
	// tokens. A wrong one costs the requests that were registered before the first event.
	BlockSize int
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		v *int
		d int
	}{
		{&c.MaxRequests, DefaultMaxRequests},
		{&c.MaxBlocks, DefaultMaxBlocks},
		{&c.MaxOrphans, DefaultMaxOrphans},
		{&c.MaxWaiting, DefaultMaxWaiting},
		{&c.Unseen, DefaultUnseen},
	} {
		if *d.v <= 0 {
			*d.v = d.d
		}
	}
	return c
}

// Index knows which blocks one cache holds (that of one engine, or of one data-parallel rank of it) and what that
// means for requests. It is a [kvevents.Sink]. All methods are safe for concurrent use.
type Index struct {
	cfg  Config
	seed uint64
	geo  atomic.Pointer[geometry] // written under mu

	mu       sync.Mutex // guards what follows
	tree     tree
	reqs     requests
	entries  map[kvevents.Hash]entry
	tiers    tiers
	orphans  orphans
	chain    chainer
	complete bool // says the sender of events
	broken   bool // says what it sent
	rebuilds bool // the history is asked for once more: no updates until it is there
	foreign  bool // group 0 is not of a kind that prefixes can be read from
	assumed  bool // the geometry is Config.BlockSize: no event has shown it yet
	reached  bool // everything was there, once
	spoken   bool // something was heard of the cache, since its engine was there
	odd      int  // events in a row whose blocks are smaller
	waiting  int  // requests with a prompt
	kept     int  // tokens of these
	unseen   int
	heard    bool // blocks were stored since unseen rose
	stats    Stats
	outlet

	touched []ref // scratch of settle
	taken   []taken
	stack   []ref
	marked  []ref
}

// entry counts the copies of a hash. node is 0 while the block's place is not known.
type entry struct {
	node ref
	gpu  int32
	low  int32
}

var _ kvevents.Sink = (*Index)(nil)

// New returns an index that knows nothing: incomplete until [Index.Complete] says otherwise.
func New(cfg Config) *Index {
	x := &Index{
		cfg: cfg.withDefaults(), seed: rand.Uint64(), tree: newTree(), reqs: newRequests(),
		entries: make(map[kvevents.Hash]entry), tiers: newTiers(), orphans: newOrphans(),
	}
	x.chain.seed = x.seed
	x.outlet = outlet{mu: &x.mu, onUpdate: cfg.OnUpdate}
	x.geo.Store(&geometry{size: max(cfg.BlockSize, 0)})
	x.assumed = cfg.BlockSize > 0
	return x
}

// chains are buffers for Register and Prefix, which name blocks before they take the lock.
var chains = sync.Pool{New: func() any { return new(naming) }}

type naming struct {
	chainer
	list []chain
}

// Register enters a request that is about to be sent, or was: its prompt's tokens as the engine sees them (with the
// chat template applied) and what its blocks depend on besides. Tokens are kept only until the block size is known.
// Registering an ID again replaces what was registered. Events that came before are taken into account. Cost: O(prompt),
// without allocation once the index has grown.
func (x *Index) Register(id string, tokens []int, extra Key) {
	var kept *prompt
	x.enlist(id, tokens, extra, &kept)
}

// enlist is Register for one of several caches: they share the prompt, if they must keep it.
func (x *Index) enlist(id string, tokens []int, extra Key, kept **prompt) {
	n := chains.Get().(*naming)
	defer chains.Put(n)
	n.seed = x.seed
	for {
		g := *x.geo.Load()
		n.list = n.list[:0]
		if g.size > 0 {
			n.list = n.prompt(n.list, g, chain{}, tokens, extra, 0, len(tokens))
		}
		if g.size == 0 && *kept == nil {
			*kept = keep(tokens, extra)
		}
		if x.register(id, g, n.list, len(tokens), *kept) {
			return
		}
	}
}

// register is false if prompts are cut in another way by now. kept is needed as long as they cannot be cut.
func (x *Index) register(id string, g geometry, blocks []chain, length int, kept *prompt) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if *x.geo.Load() != g {
		return false
	}
	if s, ok := x.reqs.byID[id]; ok {
		x.drop(s)
	}
	x.makeRoom()
	for len(x.reqs.byID) >= x.cfg.MaxRequests {
		x.stats.Forgotten++
		x.drop(x.reqs.oldest)
	}
	s := x.reqs.add(id)
	x.reqs.at(s).length = int32(min(length, math.MaxInt32))
	if g.size == 0 {
		x.reqs.at(s).waiting = kept
		x.waiting++
		x.kept += kept.len()
		x.tree.at(root).ends++
		for x.kept > x.cfg.MaxWaiting && x.reqs.oldest != s {
			x.stats.Forgotten++
			x.drop(x.reqs.oldest)
		}
		return true
	}
	x.enter(s, g, blocks)
	return true
}

// enter puts a request where its blocks are.
func (x *Index) enter(s slot, g geometry, blocks []chain) {
	end := root
	for _, c := range blocks {
		if x.tree.live >= x.cfg.MaxBlocks {
			if _, ok := x.tree.known[c]; !ok {
				x.stats.Overflow++
				break
			}
		}
		end = x.tree.child(end, c)
	}
	r := x.reqs.at(s)
	r.end, r.size = end, int32(g.size)
	x.tree.at(end).ends++
	x.place(s, x.tree.missing(end))
}

// Drop forgets a request. Blocks that the engine holds stay known.
func (x *Index) Drop(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s, ok := x.reqs.byID[id]; ok {
		x.drop(s)
	}
}

func (x *Index) drop(s slot) {
	r := x.reqs.at(s)
	x.release(r)
	x.take(s)
	end := r.end
	x.tree.at(end).ends--
	x.reqs.remove(s)
	x.prune(end)
}

// release gives up the prompt that a request has kept, if any.
func (x *Index) release(r *request) {
	if r.waiting == nil {
		return
	}
	x.waiting--
	x.kept -= r.waiting.len()
	r.waiting = nil
}

// makeRoom drops the oldest requests while those that the engine does not have take more than half of the blocks that it
// leaves: an engine's block that does not fit costs the whole picture, a request only what is said of it. Not while the
// engine's blocks are about to come once more. It is not called while a node is held that may be freed.
func (x *Index) makeRoom() {
	for !x.rebuilds && x.reqs.oldest != 0 && 2*(x.tree.live-x.tree.stored) > x.cfg.MaxBlocks-x.tree.stored {
		x.stats.Forgotten++
		x.drop(x.reqs.oldest)
	}
}

// prune frees r, and nodes above it, if nothing needs them.
func (x *Index) prune(r ref) {
	for r != root {
		n := x.tree.at(r)
		if n.parent == 0 || n.copies != 0 || n.low != 0 || n.ends != 0 || n.list != 0 || n.kids != 0 || n.flags != 0 {
			return
		}
		if e, ok := x.entries[n.hash]; ok && e.node == r {
			delete(x.entries, n.hash)
		}
		up := n.parent
		x.tree.unlink(r)
		r = up
	}
}

// Served says that the engine has answered the request: it can be reported as lost from now on. Call it for every
// answer; it also shows a tokenizer that is not the engine's.
func (x *Index) Served(id string) { x.end(id, served|ended) }

// Aborted says that the request ended without an answer. Some of its blocks may have been stored; it is reported
// as lost when these are gone.
func (x *Index) Aborted(id string) { x.end(id, ended) }

func (x *Index) end(id string, flags uint8) {
	x.mu.Lock()
	if s, ok := x.reqs.byID[id]; ok {
		r := x.reqs.at(s)
		fresh := flags&served != 0 && !r.is(served)
		r.flags |= flags
		if fresh && r.end != root {
			x.answered(r)
		}
		x.report(s, r.blocks)
	}
	x.mu.Unlock()
	x.deliver()
}

// answered counts the answered requests of which no block was ever seen, since one of which some were. Those that were
// answered while events were missing say nothing, but for one after blocks were stored.
func (x *Index) answered(r *request) {
	switch {
	case r.is(seen):
		x.unseen = 0
	case x.complete || x.heard:
		x.unseen++
		x.heard = false
	}
}

// Resident returns how many of the request's tokens, from the beginning of its prompt, the engine can take from its
// GPU's cache, and whether the index is known to hold everything. A request that is not registered has 0.
func (x *Index) Resident(id string) (tokens int, complete bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s, ok := x.reqs.byID[id]; ok {
		r := x.reqs.at(s)
		tokens = int(r.blocks) * int(r.size)
	}
	return tokens, x.whole()
}

// Loadable is like Resident, and counts blocks in lower tiers too: what the engine need not compute, if it loads.
func (x *Index) Loadable(id string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	s, ok := x.reqs.byID[id]
	if !ok {
		return 0
	}
	n, _ := x.loadable(x.reqs.at(s))
	return n
}

// loadable returns how many tokens of a request can be loaded or are resident, and the tier of the first block that must be loaded.
func (x *Index) loadable(r *request) (tokens int, tier string) {
	if x.tiers.empty() {
		return int(r.blocks) * int(r.size), ""
	}
	depth, first := x.tree.at(r.end).depth, root
	for n := r.end; n != root; n = x.tree.at(n).parent {
		at := x.tree.at(n)
		switch {
		case at.resident():
		case at.low == 0:
			depth, first = at.depth-1, root
		default:
			first = n
		}
	}
	if first != root {
		tier = x.tiers.of(x.tree.at(first).hash)
	}
	return int(depth) * int(r.size), tier
}

// whole reports whether what is known is all there is.
func (x *Index) whole() bool {
	return x.complete && !x.broken && !x.foreign && len(x.orphans.blocks) == 0
}

// Prefix returns how many tokens of a prompt are resident now, without entering it: whole blocks from the beginning
// on. The engine computes the last token of a prompt in any case.
func (x *Index) Prefix(tokens []int, extra Key) int {
	const step = 64
	n := chains.Get().(*naming)
	defer chains.Put(n)
	n.seed = x.seed
	g := *x.geo.Load()
	if g.size == 0 {
		return 0
	}
	parent, from := chain{}, 0
	for {
		n.list = n.prompt(n.list[:0], g, parent, tokens, extra, from, step)
		hit := x.hits(n.list)
		from += hit
		if hit < step {
			return from * g.size
		}
		parent = n.list[step-1]
	}
}

func (x *Index) hits(list []chain) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, c := range list {
		if r, ok := x.tree.known[c]; !ok || !x.tree.at(r).resident() {
			return i
		}
	}
	return len(list)
}
