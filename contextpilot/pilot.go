package contextpilot

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// Pilot plans requests and keeps the index of what engines hold. It is safe for concurrent use, does no I/O and
// starts no goroutines, but for those that a PlanBatch of more than 100,000 requests waits for.
//
// Locks are taken in this order: that of windows, then a scope's; the tables' own locks are taken last and held only for a look-up.
// It keeps nothing of conversations: see [Position].
type Pilot struct {
	cfg      Config
	stats    counters
	tiers    *tiers
	drafts   sync.Pool  // of *draft
	together sync.Mutex // one window is planned at a time
	forms    noteForms
	prefix   string // of assigned request IDs
	next     atomic.Uint64
	inject   func(stage string) error // fault injection, tests only

	live, nodes, past atomic.Int64 // of all scopes together, see there

	mu      sync.RWMutex
	scopes  map[Scope]*scope
	tenants map[string]*lru.Cache[Scope, *scope] // their scopes
}

// New returns a Pilot. Errors wrap ErrBadConfig and name the field and the value.
func New(cfg Config) (*Pilot, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return &Pilot{
		cfg: cfg, forms: formsOf(cfg.Notes),
		drafts: sync.Pool{New: func() any { return new(draft) }},
		prefix: "rp-" + hex.EncodeToString(b[:]) + "-", scopes: map[Scope]*scope{},
		tenants: map[string]*lru.Cache[Scope, *scope]{}, tiers: newTiers(cfg.LoadCost),
	}, nil
}

// Plan lays out a request and records it as in flight, so that the next one can share with it. It always returns
// a usable plan: a fault in a stage gives retrieval order with every block in full. Time: hashing the texts,
// then O(k) to O(k·w) by policy; the scope's lock is held for ordering and insertion only.
func (p *Pilot) Plan(req Request) Plan {
	began := p.cfg.Now()
	d := p.draft(&req)
	p.plan(d, &req, began)
	plan := d.plan
	d.recycle()
	p.drafts.Put(d)
	p.done(&plan, began)
	return plan
}

// plan runs the stages and records the draft.
func (p *Pilot) plan(d *draft, req *Request, began time.Time) {
	sc := p.scope(req.Scope, began)
	if req.ID != "" {
		sc.withdraw(req.ID)
	}
	err := p.prepare(d, req)
	if err == nil {
		sc.mu.Lock()
		err = p.guard(stageReorder, func() error { return p.reorder(sc, d) })
		sc.mu.Unlock()
	}
	p.finish(d, err, nil)
	p.enter(sc, d)
}

// finish runs the last stage. After a fault, of this stage or of an earlier one, the draft is retrieval order. sc, if not nil, is the
// scope in which it has not been looked up yet what the order gains.
func (p *Pilot) finish(d *draft, fault error, sc *scope) {
	if fault == nil {
		fault = p.guard(stageAnnotate, func() error {
			if sc != nil {
				sc.foretold(d)
			}
			return p.annotate(d)
		})
	}
	if fault != nil {
		p.plain(d)
		d.items()
		d.plan.Fault = fault
	}
}

// Preview returns how the blocks of a request would be sent in the order in which they stand, with the references that [Pilot.Plan] would
// make. It is no plan of a prompt: nothing is recorded or counted but faults, and its Prefix is not known.
func (p *Pilot) Preview(req Request) Plan {
	req.Fixed = true
	d := p.prepareOne(&req)
	p.finish(d, d.plan.Fault, nil)
	return d.plan
}

// enter records a draft that is going to be sent in the index.
func (p *Pilot) enter(sc *scope, d *draft) {
	path := d.path()
	sc.mu.Lock()
	p.insert(sc, d, path)
	sc.mu.Unlock()
	d.plan.Turn = d.behind.Turn() + 1
	d.plan.End = d.end(path)
}

func (p *Pilot) draft(req *Request) *draft {
	id := req.ID
	if id == "" {
		id = p.prefix + strconv.FormatUint(p.next.Add(1), 36)
	}
	kept := *req
	kept.ID, kept.Blocks = id, slices.Clone(req.Blocks)
	d := p.drafts.Get().(*draft)
	d.begin(kept)
	d.plan.forms = p.forms
	return d
}

// prepare runs the stages that come before the order.
func (p *Pilot) prepare(d *draft, req *Request) error {
	if err := p.guard(stageIndex, func() error { return p.index(d, req) }); err != nil {
		d.unknown(req)
		return err
	}
	if err := p.guard(stageDedup, func() error { return p.dedup(d) }); err != nil {
		return err
	}
	d.budget(req.Budget)
	if req.Room != 0 {
		if err := p.guard(stageIndex, func() error { d.fit(&p.cfg.Notes, p.cfg.Tokenizer.Count); return nil }); err != nil {
			return err
		}
	}
	if p.cfg.Limits.Group == nil || req.Fixed {
		p.cfg.Limits.split(d)
		return nil
	}
	return p.guard(stageReorder, func() error { p.cfg.Limits.split(d); return nil }) // Group is the user's
}

// insert records the draft in the index. Should the index itself fail, it is dropped: what is known of the cache
// is lost, the plan is not.
func (p *Pilot) insert(sc *scope, d *draft, path []tree.Elem) {
	d.plan.Policy = sc.name
	err := p.guard(stageIndex, func() error { sc.insert(d, path); return nil })
	if err != nil {
		sc.build(p)
		d.plan.Prefix, d.plan.anywhere = Prefix{}, 0
	}
	sc.count()
}

func (p *Pilot) done(plan *Plan, began time.Time) {
	p.shed()
	p.stats.add(plan, 1)
	if p.cfg.Recorder != nil {
		kept := *plan // a recorder may keep it
		p.cfg.Recorder.Planned(kept.Scope, &kept, p.cfg.Now().Sub(began))
	}
}

// TakeBack takes a plan that was not sent out of the index and of [Stats], as if it had never been made. taken is false, and nothing
// happens, for one that was served. Call it once for a plan, and only for the last one of its request's ID. Time: as for an event.
func (p *Pilot) TakeBack(plan *Plan) (taken bool) {
	sc := p.findScope(plan.Scope)
	if sc != nil && sc.served(plan.RequestID) {
		return false
	}
	p.stats.add(plan, -1)
	if sc != nil {
		sc.gone(plan.RequestID)
	}
	return true
}

// String says what the pilot holds, for logs.
func (p *Pilot) String() string {
	st := p.Stats()
	return fmt.Sprintf("contextpilot.Pilot{%d plans, %d live requests, %d faults}", st.Plans, st.LiveRequests, st.Faults())
}

// Stages in the order they run. The blocks that a conversation has shown are taken out first, so that a policy
// orders only what is sent.
const (
	stageIndex    = "index"
	stageDedup    = "dedup"
	stageReorder  = "reorder"
	stageAnnotate = "annotate"
)

// guard runs one stage; an error or a panic in it becomes a fault of that stage, which is counted.
func (p *Pilot) guard(stage string, f func() error) error {
	err := recovered(func() error {
		if p.inject != nil {
			if err := p.inject(stage); err != nil {
				return err
			}
		}
		return f()
	})
	if err == nil {
		return nil
	}
	p.stats.fault(stage)
	return fmt.Errorf("%w: %s: %w", ErrFault, stage, err)
}

// recovered calls f and returns a panic in it as an error.
func recovered(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

// Tokenizer returns the tokenizer that the pilot counts with, for what is counted beside its plans.
func (p *Pilot) Tokenizer() Tokenizer { return p.cfg.Tokenizer }

// Echoes returns how long an echo may be in tokens, or [EchoWhole]; 0: the Pilot makes none.
func (p *Pilot) Echoes() int {
	if p.cfg.Top != TopEchoes && p.cfg.Top != TopNear {
		return 0
	}
	return p.cfg.EchoTokens
}
