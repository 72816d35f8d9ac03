package conversation

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// Options configure an [Engine]. All may be left out.
type Options struct {
	// Memory is the upper bound in bytes of all that is remembered of all tenants; 0: 256 MiB.
	Memory int64
	// Budget replaces Memory where other tables share one; nil: none do.
	Budget *budget.Budget
	// Orders remembers which orders were chosen, for restarts and other replicas; nil: in memory.
	Orders orders.Store
	// Journal is given what the index of prompts must know after a restart; nil: nothing is kept.
	Journal Journal
	// Plan plans one prompt, perhaps together with others; nil: the pilot, at once. An error is the context's.
	Plan func(context.Context, contextpilot.Request) (contextpilot.Plan, error)
	// Expire is called before each plan: it may take out of the index what the engine does not hold any more.
	Expire func()
	// Encode writes an edited text as the front end sends it, unless the text is opaque; nil: as it is. It is called once for a text that
	// is sent many times.
	Encode func(text string) string
	// Modulus is that of the blocks of lines; 0: 13.
	Modulus int
	// MaxSessions is how many named conversations of a tenant can be forgotten one by one; 0: 100,000.
	MaxSessions int
	// MaxTenants: 0: 64.
	MaxTenants int
	Log        *slog.Logger // nil: slog.Default
}

// Journal notes what the index of prompts must know after a restart. Its methods are called concurrently.
type Journal interface {
	// Planned is called for each planned prompt; its blocks have IDs and tokens, but no texts. order is that in which they are
	// sent: the first is block order[0]. Nil: as they stand.
	Planned(r contextpilot.Request, order []int)
	// Gone is called for each that the engine does not hold any more, or never got.
	Gone(scope contextpilot.Scope, id string)
}

// Mode says how a request is forwarded.
type Mode uint8

// The modes.
const (
	Planned Mode = iota // with the edits
	DryRun              // as it came; the edits say what would have been done
	AsCame              // as it came, and nothing is looked at
)

// Conversation says whose request it is, and how it is to be treated.
type Conversation struct {
	Tenant, Model string
	// Name is the client's for the conversation, for [Engine.Forget] and [Engine.Went]; "": it has none. No edit depends on it.
	Name string
	// Key is different for settings that change edits.
	Key  string
	Mode Mode
	// Request is the ID of the request for the first prompt that is planned; "": one is made.
	Request string
	// EvictedByID: the engine knows the first planned prompt by its ID, and reports its eviction by it.
	EvictedByID bool
	Look        Look
	// Recorded keeps to what was recorded of another server: documents are left out without a note or with one that names nothing, in
	// that server's layout, and blocks in our own markup are not looked at.
	Recorded bool
	// Place chooses the order of the documents in the first result of the conversation that holds several, and is nil if it stays.
	// What it returns is remembered; nil: the context has ended. The keys stand for the documents.
	Place func(ctx context.Context, keys []Sum) []int
	// Ordered is called when an order of so many documents was chosen, or found; nil: it is not.
	Ordered func(documents int, known bool)
}

// Look says where documents are looked for, and in which form.
type Look struct {
	System, Tools bool
	Form          extract.Options
}

// Engine decides what of a conversation's texts is sent in which order, and what is replaced by a note because it stands further
// up. Edits follow from the messages alone; only chosen orders are remembered. Safe for concurrent use.
type Engine struct {
	pilot *contextpilot.Pilot
	opt   Options
	echo  int // Pilot.Echoes

	mu      sync.Mutex
	tenants *lru.Cache[string, *tenant]
}

// New returns an Engine whose orders at the front of prompts are the pilot's.
func New(p *contextpilot.Pilot, o Options) (*Engine, error) {
	if p == nil {
		return nil, errors.New("conversation: New: pilot is nil")
	}
	if o.Memory < 0 {
		return nil, errors.New("conversation: Options.Memory is negative")
	}
	if o.Budget == nil {
		o.Budget = budget.New(o.Memory)
	}
	if o.Orders == nil {
		o.Orders = orders.NewMemoryIn(o.Budget, o.MaxTenants)
	}
	if o.Plan == nil {
		o.Plan = func(_ context.Context, r contextpilot.Request) (contextpilot.Plan, error) { return p.Plan(r), nil }
	}
	if o.Encode == nil {
		o.Encode = strings.Clone // the text may be a part of the request
	}
	if o.Expire == nil {
		o.Expire = func() {}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 100_000
	}
	if o.MaxTenants <= 0 {
		o.MaxTenants = 64
	}
	return &Engine{pilot: p, opt: o, echo: p.Echoes(), tenants: lru.New[string, *tenant](o.MaxTenants)}, nil
}

// Forget drops what is kept of a tenant's conversation of that name, or with an empty name all of the tenant's, the index of its
// prompts and its orders too. Messages that another named conversation has sent too are kept for that one. It reports whether
// there was anything.
func (e *Engine) Forget(tenant, name string) bool {
	e.mu.Lock()
	t, ok := e.tenants.Get(tenant)
	if ok && name == "" {
		e.tenants.Delete(tenant)
	}
	e.mu.Unlock()
	if name == "" {
		if ok {
			t.close()
		}
		if err := e.opt.Orders.Forget(context.Background(), tenant); err != nil {
			e.opt.Log.Warn("orders of a tenant could not be forgotten", "error", err)
		}
		return e.pilot.DropTenant(tenant) > 0 || ok
	}
	if !ok {
		return false
	}
	named, ok := t.forgetSession(name)
	if ok {
		t.memo.forget(named)
	}
	return ok
}
