package contextpilot

import (
	"container/list"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/internal/tree"
)

// Pilot plans requests and keeps the index of what engines hold. It is safe for concurrent use, does no I/O and
// starts no goroutines, but for those that a PlanBatch of more than 100,000 requests waits for.
//
// Locks are taken in this order: that of windows, a session's, then a scope's; the tables' own locks are taken last
// and held only for a look-up. Two turns of one session wait for each other; different sessions meet only in their scope.
type Pilot struct {
	cfg      Config
	sessions *sessions
	held     handoff
	stats    counters
	tiers    *tiers
	drafts   sync.Pool  // of *draft
	together sync.Mutex // one window is planned at a time
	forms    noteForms
	prefix   string // of assigned request IDs
	next     atomic.Uint64
	inject   func(stage string) error // fault injection, tests only

	live  atomic.Int64 // requests in all scopes
	nodes atomic.Int64 // blocks of their paths
	past  atomic.Int64 // blocks of earlier requests that policies remember

	mu      sync.RWMutex
	scopes  map[Scope]*scope
	tenants map[string]*list.List // their scopes, the one used last first
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
		sessions: newSessions(cfg.MaxSessions, cfg.SessionTTL), drafts: sync.Pool{New: func() any { return new(draft) }},
		prefix: "rp-" + hex.EncodeToString(b[:]) + "-", scopes: map[Scope]*scope{}, tenants: map[string]*list.List{}, tiers: newTiers(cfg.LoadCost),
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

// plan runs the stages and records the draft, with the session's lock held.
func (p *Pilot) plan(d *draft, req *Request, began time.Time) {
	var s *session
	if req.Session != "" {
		s = p.sessions.get(sessionID{req.Scope.Tenant, req.Session}, began)
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	sc := p.scope(req.Scope, began)
	p.replace(sc, s, req)
	err := p.prepare(d, req, s)
	if err == nil {
		sc.mu.Lock()
		err = p.guard(stageReorder, func() error { return sc.reorder(d) })
		sc.mu.Unlock()
	}
	if err == nil {
		err = p.guard(stageAnnotate, func() error { return p.annotate(d) })
	}
	if err != nil {
		p.plain(d)
		d.items()
		d.plan.Fault = err
	}
	p.enter(sc, s, d)
}

// enter records a draft that is going to be sent in the index and in its conversation. s, if not nil, is locked.
func (p *Pilot) enter(sc *scope, s *session, d *draft) {
	req := &d.plan.req
	sc.mu.Lock()
	path := p.insert(sc, d, req.Session)
	sc.mu.Unlock()
	d.plan.Turn = 1
	if s != nil {
		p.stats.turnsDropped.Add(int64(s.record(req.Scope, d.plan.RequestID, d.said, d.sent(), d.left, slices.Clone(path))))
		d.plan.Turn = s.count
	}
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

// prepare runs the stages that come before the order. s, if not nil, is locked.
func (p *Pilot) prepare(d *draft, req *Request, s *session) error {
	if err := p.guard(stageIndex, func() error { return p.index(d, req, s) }); err != nil {
		d.unknown(req)
		return err
	}
	if err := p.guard(stageDedup, func() error { return p.dedup(d, s) }); err != nil {
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
func (p *Pilot) insert(sc *scope, d *draft, owner string) (path []tree.Elem) {
	d.plan.Policy = sc.name
	err := p.guard(stageIndex, func() error {
		path = sc.insert(d, owner)
		return nil
	})
	if err != nil {
		sc.build(p)
		d.plan.Prefix, d.plan.anywhere = Prefix{}, 0
	}
	sc.count()
	return path
}

func (p *Pilot) done(plan *Plan, began time.Time) {
	p.shed()
	p.stats.add(plan, 1)
	p.unclaimed(p.held.expire(began))
	if p.cfg.Recorder != nil {
		kept := *plan // a recorder may keep it
		p.cfg.Recorder.Planned(kept.Scope, &kept, p.cfg.Now().Sub(began))
	}
}

// replace takes an earlier plan of the same request ID back, if it was not served; of the same turn of a conversation in
// another scope, too: another replica was to take it. s is locked.
func (p *Pilot) replace(sc *scope, s *session, req *Request) {
	if req.ID == "" {
		return
	}
	p.superseded(sc, req)
	sc.withdraw(req.ID)
	if s == nil {
		return
	}
	if was, ok := s.sentTo(req.ID); ok && was != req.Scope {
		if other := p.findScope(was); other != nil {
			other.withdraw(req.ID)
		}
	}
	if i := s.last(req.ID); i >= 0 && !s.turns[i].served { // whether an index still has it or not
		s.takeBack(req.ID)
	}
}

// EndSession forgets a conversation of scope's tenant; its model and replica do not matter. Its prompts stay in the index:
// they are still in the engine's cache.
func (p *Pilot) EndSession(scope Scope, id string) (known bool) {
	return p.sessions.end(sessionID{scope.Tenant, id})
}

// String says what the pilot holds, for logs.
func (p *Pilot) String() string {
	st := p.Stats()
	return fmt.Sprintf("contextpilot.Pilot{%d plans, %d live requests, %d sessions, %d faults}", st.Plans, st.LiveRequests, st.Sessions, st.Faults())
}
