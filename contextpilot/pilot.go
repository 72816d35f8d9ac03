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
	prefix   string     // of assigned request IDs
	next     atomic.Uint64
	inject   func(stage string) error // fault injection, tests only

	live atomic.Int64 // requests in all scopes

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
		cfg: cfg, sessions: newSessions(cfg.MaxSessions, cfg.SessionTTL), drafts: sync.Pool{New: func() any { return new(draft) }},
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
	owner := ""
	if req.Session != "" {
		s = p.sessions.get(sessionID{req.Scope.Tenant, req.Session}, began)
		s.mu.Lock()
		defer s.mu.Unlock()
		owner = req.Session
	}
	sc := p.scope(req.Scope, began)
	p.replace(sc, s, req.ID)
	d.plan.Turn = 1
	if s != nil {
		d.plan.Turn = s.count + 1
	}
	err := p.prepare(d, req, s)
	var path []tree.Elem
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
	sc.mu.Lock()
	path = p.insert(sc, d, owner)
	sc.mu.Unlock()
	if s != nil {
		p.stats.turnsDropped.Add(int64(s.record(d.plan.RequestID, d.sent(), d.left, slices.Clone(path))))
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
		d.plan.Prefix = Prefix{}
	}
	sc.count()
	return path
}

func (p *Pilot) done(plan *Plan, began time.Time) {
	p.shed()
	p.stats.planned(plan)
	if p.cfg.Recorder != nil {
		kept := *plan // a recorder may keep it
		p.cfg.Recorder.Planned(kept.Scope, &kept, p.cfg.Now().Sub(began))
	}
}

// replace takes an earlier plan of the same request ID back, if it is live and was not served. s is locked.
func (p *Pilot) replace(sc *scope, s *session, id string) {
	if id == "" {
		return
	}
	sc.mu.Lock()
	_, served, ok := sc.tree.Owner(id)
	if ok && !served {
		sc.tree.Remove(id)
		sc.shrunk()
	}
	sc.mu.Unlock()
	if ok && !served && s != nil {
		s.takeBack(id)
	}
}

// EndSession forgets a conversation. Its prompts stay in the index: they are still in the engine's cache.
func (p *Pilot) EndSession(scope Scope, id string) (known bool) {
	return p.sessions.end(sessionID{scope.Tenant, id})
}

// String says what the pilot holds, for logs.
func (p *Pilot) String() string {
	st := p.Stats()
	return fmt.Sprintf("contextpilot.Pilot{%d plans, %d live requests, %d sessions, %d faults}", st.Plans, st.LiveRequests, st.Sessions, st.Faults())
}
