package contextpilot

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// scope is the index of one cache, guarded by mu.
type scope struct {
	mu     sync.Mutex
	tree   *tree.Tree
	policy Policy
	name   string // the policy's
	head   int    // tokens in front of every prompt; −1: no request yet, so it is not resident
	block  int    // engine block in tokens
	// careful is that of queries.
	careful bool
	tiers   *tiers
	kept    float64                      // 1 − Config.Recompute, 0: blocks are not kept by themselves
	sent    *lru.Cache[uint64, struct{}] // keys of blocks that were sent, anywhere; nil: kept is 0

	path  []tree.Elem // scratch
	order []int
	at    []int
	seen  []bool
	cands []Candidate

	// For the table of scopes.
	id    Scope
	used  atomic.Int64 // nanoseconds
	left  bool         // the table: nothing is counted any more
	live  gauge        // requests
	nodes gauge        // blocks of their paths
	past  gauge        // blocks of earlier requests that the policy remembers
}

// gauge is a number that counts in a sum over all scopes, too. It is set with the scope's mu held.
type gauge struct {
	atomic.Int64
	all *atomic.Int64
}

func (g *gauge) set(n int) {
	if was := g.Load(); was != int64(n) {
		g.Store(int64(n))
		g.all.Add(int64(n) - was)
	}
}

// rememberer is a Policy that remembers the blocks of earlier requests, resident or not.
type rememberer interface {
	Past() int
	ForgetPast(blocks int)
}

func newScope(p *Pilot) *scope {
	sc := &scope{block: p.cfg.BlockSize, tiers: p.tiers, careful: p.cfg.Top == TopNear}
	sc.live.all, sc.nodes.all, sc.past.all = &p.live, &p.nodes, &p.past
	if p.cfg.Recompute > 0 {
		sc.kept = 1 - p.cfg.Recompute
	}
	sc.build(p)
	return sc
}

// build starts with an empty index and a new policy. A policy that fails to learn that a request is gone is a
// fault of the index stage; the request is gone nevertheless.
func (sc *scope) build(p *Pilot) {
	sc.policy, sc.name = p.newPolicy()
	sc.head = -1
	forgot := func(string) {}
	if l, ok := sc.policy.(Learner); ok {
		forgot = func(id string) {
			_ = p.guard(stageIndex, func() error { l.Gone(id); return nil })
		}
	}
	if sc.tree != nil {
		p.stats.shed.Add(int64(sc.tree.Dropped()))
	}
	sc.tree = tree.New(p.cfg.Capacity, p.cfg.MaxRequests, forgot)
	sc.forgetSent()
}

// newPolicy makes a scope's policy. One that cannot be made is a fault, and retrieval order takes its place.
func (p *Pilot) newPolicy() (policy Policy, name string) {
	err := p.guard(stageReorder, func() error {
		if policy = p.cfg.NewPolicy(); policy == nil {
			return errors.New("NewPolicy returned nil")
		}
		name = policy.Name()
		return nil
	})
	if err != nil {
		return retrieval{}, retrieval{}.Name()
	}
	return policy, name
}

func (sc *scope) lastUse() time.Time { return time.Unix(0, sc.used.Load()) }

// forgetSent forgets which blocks were sent.
func (sc *scope) forgetSent() {
	if sc.sent = nil; sc.kept > 0 {
		sc.sent = lru.New[uint64, struct{}](maxSent)
	}
}

// insert records the draft's path as in flight and fills in what is expected to be resident.
func (sc *scope) insert(d *draft, path []tree.Elem) {
	var had, again int
	if _, live := sc.tree.Served(d.plan.RequestID); live { // it was answered: what its prompt has left is resident
		_, again, had = sc.tree.Walk(path[:len(path)-1])
	}
	if l, ok := sc.policy.(Learner); ok && d.plan.Fault == nil {
		sc.tree.Remove(d.plan.RequestID) // the policy hears of it before it learns the new order
		l.Sent(d.plan.RequestID, sc.query(d), sc.positions(d))
	}
	steps, resident := sc.tree.Insert(d.plan.RequestID, path)
	steps, resident = max(steps, again), max(resident, had)
	tokens := resident
	if sc.head >= 0 {
		tokens += d.head
	}
	sc.head = d.head
	tokens -= tokens % sc.block // shorter than a block is not reused at all
	d.plan.Prefix = Prefix{}
	if tokens > 0 {
		d.plan.Prefix.Blocks = min(max(steps-len(d.start), 0), len(d.order))
	}
	d.plan.anywhere = sc.anywhere(path, resident)
	d.plan.Prefix.Tokens = tokens + d.plan.anywhere
	if sc.sent != nil {
		for _, i := range d.order {
			sc.sent.Put(uint64(d.ids[i].key), struct{}{})
		}
	}
}

// served reports whether a live request was answered.
func (sc *scope) served(id string) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	served, _ := sc.tree.Served(id)
	return served
}

// withdraw takes a live plan that was not served out of the index.
func (sc *scope) withdraw(id string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if served, live := sc.tree.Served(id); live && !served {
		sc.tree.Remove(id)
		sc.shrunk()
	}
}

// shrunk is called when a request has left the index: what stands in front of every prompt is as resident as the prompts
// behind it, so with the last of them it is not known to be there any more, or never came to the engine.
func (sc *scope) shrunk() {
	if sc.tree.Len() == 0 {
		sc.head = -1
	}
	sc.count()
}

// count updates how many requests are live, for all scopes together.
func (sc *scope) count() {
	if sc.left {
		return
	}
	sc.live.set(sc.tree.Len())
	sc.nodes.set(sc.tree.Nodes())
	if r, ok := sc.policy.(rememberer); ok {
		sc.past.set(r.Past())
	}
}

// shed drops the n oldest requests, or all of fewer, and returns their number.
func (sc *scope) shed(n int) (dropped int) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for dropped < n && sc.tree.RemoveOldest() {
		dropped++
	}
	sc.shrunk()
	return dropped
}

// forgetPast makes the policy forget so many blocks of earlier requests.
func (sc *scope) forgetPast(blocks int) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if r, ok := sc.policy.(rememberer); ok {
		r.ForgetPast(blocks)
	}
	sc.count()
}

// leave is called when the scope is not in the table any more. Plans that have it already end with it. It returns how many
// requests its index has dropped.
func (sc *scope) leave() (dropped int) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.left = true
	sc.live.set(0)
	sc.nodes.set(0)
	sc.past.set(0)
	return sc.tree.Dropped()
}

// clear forgets everything that was resident.
func (sc *scope) clear() {
	sc.tree.Clear()
	sc.forgetSent()
	sc.shrunk()
}

// tiers numbers the tiers of Config.LoadCost, from 1. Tier 0 is the engine's own memory; the last number stands for
// tiers that are not listed. It is never changed.
type tiers struct {
	numbers map[string]uint8
	costs   [tree.MaxTier + 1]float64
}

func checkTiers(costs map[string]float64) error {
	if len(costs) > tree.MaxTier-1 {
		return fmt.Errorf("%w: LoadCost names %d tiers, want at most %d", ErrBadConfig, len(costs), tree.MaxTier-1)
	}
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		if c := costs[name]; name == "" || !(c >= 0 && c <= 1) {
			return fmt.Errorf("%w: LoadCost %q: %v, want a name and a cost from 0 to 1", ErrBadConfig, name, c)
		}
	}
	return nil
}

func newTiers(costs map[string]float64) *tiers {
	t := &tiers{numbers: map[string]uint8{}}
	for i, name := range slices.Sorted(maps.Keys(costs)) {
		t.numbers[name] = uint8(i + 1)
		t.costs[i+1] = costs[name]
	}
	for i := len(costs) + 1; i <= tree.MaxTier; i++ {
		t.costs[i] = 1
	}
	return t
}

func (t *tiers) number(name string) uint8 {
	if name == "" {
		return 0
	}
	if n, ok := t.numbers[name]; ok {
		return n
	}
	return tree.MaxTier
}
