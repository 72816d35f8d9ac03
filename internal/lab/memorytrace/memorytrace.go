// Package memorytrace drives a trace of recorded retrieval through memories: its blocks are stored as memories of users, each
// request is a turn of a chain whose memory is memory.Wrap, and what comes out is a trace, blocks and a plan as the chain
// would have sent them, for a judge to count.
//
// Who is a user follows from the trace: requests that have blocks in common are one user's.
package memorytrace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/memory"
)

// Options of a [Path]; the zero Options take everything the trace has.
type Options struct {
	// K is how many memories a turn recalls; 0: memory.DefaultK.
	K int
	// Own: the store's own search finds the memories. Otherwise a search finds what the trace has.
	Own bool
	// Policy orders the blocks; empty: the pilot's default.
	Policy string
}

// Path is the way from a store of memories to prompts.
type Path struct {
	// Blocks are the memories under the labels that they have in prompts.
	Blocks []trace.Block

	pilot  *contextpilot.Pilot
	store  *memory.Local
	search *recorded // nil: the store's own
	recall interface {
		LoadMemoryVariables(ctx context.Context, inputs map[string]any) (map[string]any, error)
	}
	plan   contextpilot.Plan // of the recall that was made last
	users  users
	names  map[string]string
	memory map[string]string // block → ID of its memory
}

// Turn is a request as the path would send it.
type Turn struct {
	Request trace.Request // with the labels of memories, best first
	Plan    trace.Plan
	Full    contextpilot.Plan
}

// New stores the blocks that the trace uses as memories. The caller closes the path.
func New(ctx context.Context, trc []trace.Request, blocks *trace.Blocks, opts Options) (*Path, error) {
	pilot, err := contextpilot.New(contextpilot.Config{Policy: opts.Policy})
	if err != nil {
		return nil, err
	}
	store, err := memory.New(memory.NewInMemory(), memory.Config{Embedder: memory.Lexical})
	if err != nil {
		return nil, err
	}
	p := &Path{pilot: pilot, store: store, users: newUsers(trc), memory: map[string]string{}}
	p.names = p.users.names(trc)
	var searched memory.Store = store
	if !opts.Own {
		p.search = &recorded{Store: store}
		searched = p.search
	}
	p.recall = memory.Wrap(pilot, nothing{}, searched, memory.WithK(opts.K), memory.WithRecallKey("memories"),
		memory.WithPlans(func(plan contextpilot.Plan) { p.plan = plan }))
	for b := range blocks.All() {
		if err := p.remember(ctx, b); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	return p, nil
}

// Close forgets the memories.
func (p *Path) Close() error { return p.store.Close() }

// Pilot returns the pilot that plans, for what engines report.
func (p *Path) Pilot() *contextpilot.Pilot { return p.pilot }

// User returns whose request it is.
func (p *Path) User(q trace.Request) string {
	if len(q.Docs) == 0 {
		return "nobody"
	}
	return p.names[p.users.first(q.Docs[0])]
}

func (p *Path) remember(ctx context.Context, b trace.Block) error {
	if p.users[b.ID] == "" {
		return nil
	}
	scope := memory.Scope{User: p.names[p.users.first(b.ID)]}
	done, err := p.store.Add(ctx, scope, []memory.Message{{Role: memory.User, Content: b.Text}},
		memory.AddOptions{Extractor: memory.Everything{}})
	if err != nil {
		return err
	}
	if len(done) != 1 || done[0].Event != memory.Added {
		return fmt.Errorf("block %q became %d changes: is its text another block's?", b.ID, len(done))
	}
	m, err := p.store.Get(ctx, done[0].ID)
	if err != nil {
		return err
	}
	p.memory[b.ID] = m.ID
	p.Blocks = append(p.Blocks, trace.Block{ID: m.BlockID(), Text: m.Text})
	return nil
}

// Turn recalls for a request.
func (p *Path) Turn(ctx context.Context, q trace.Request) (Turn, error) {
	if p.search != nil {
		p.search.found = p.search.found[:0]
		for _, id := range q.Docs {
			p.search.found = append(p.search.found, p.memory[id])
		}
	}
	p.plan = contextpilot.Plan{}
	ctx = memory.WithScope(framework.WithConversation(ctx, q.Session), memory.Scope{User: p.User(q)})
	variables, err := p.recall.LoadMemoryVariables(ctx, map[string]any{"input": q.Query})
	if err != nil {
		return Turn{}, fmt.Errorf("request %q: %w", q.ID, err)
	}
	if err := p.plan.Fault; err != nil {
		return Turn{}, fmt.Errorf("request %q: %w", q.ID, err)
	}
	shown, _ := variables["memories"].(string)
	if !strings.HasSuffix(shown+"\n", p.plan.Context()) {
		return Turn{}, fmt.Errorf("request %q: what stands in the prompt is not what was planned", q.ID)
	}
	return p.turn(q), nil
}

// turn writes the last plan as files have it.
func (p *Path) turn(q trace.Request) Turn {
	t := Turn{Full: p.plan, Request: trace.Request{ID: q.ID, Session: q.Session, Turn: q.Turn, Query: q.Query, Answer: q.Answer}}
	t.Plan = trace.Plan{ID: q.ID, Session: q.Session, Turn: q.Turn, Hint: p.plan.Hint}
	ranked := make([]string, len(p.plan.Items))
	for _, it := range p.plan.Items {
		ranked[it.Index] = it.Label
		t.Plan.Docs = append(t.Plan.Docs, it.Label)
	}
	t.Request.Docs = ranked
	return t
}

// recorded is a store whose searches find what the trace has, in its order; all else is the store's own.
type recorded struct {
	memory.Store
	found []string // IDs of memories, for the search that comes next
}

// Search returns the first k of what was recorded, with scores that fall.
func (r *recorded) Search(ctx context.Context, _ memory.Scope, _ string, k int, _ memory.SearchOptions) ([]memory.Hit, error) {
	n := min(k, len(r.found))
	hits := make([]memory.Hit, n)
	for i, id := range r.found[:n] {
		m, err := r.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		hits[i] = memory.Hit{Memory: m, Score: 1 - float64(i)/float64(n)}
	}
	return hits, nil
}

// nothing is a chain's memory without a history: each request of such a trace is a conversation of its own.
type nothing struct{}

func (nothing) GetMemoryKey(context.Context) string      { return "history" }
func (nothing) MemoryVariables(context.Context) []string { return nil }
func (nothing) Clear(context.Context) error              { return nil }

func (nothing) LoadMemoryVariables(context.Context, map[string]any) (map[string]any, error) {
	return map[string]any{}, nil
}

func (nothing) SaveContext(context.Context, map[string]any, map[string]any) error { return nil }

// users finds the owner of a block: two blocks that a request has together have one owner.
type users map[string]string // block → a block of the same owner; an owner's first block → itself

func newUsers(trc []trace.Request) users {
	u := users{}
	for _, q := range trc {
		for _, id := range q.Docs {
			if u[id] == "" {
				u[id] = id
			}
			u[u.first(id)] = u.first(q.Docs[0])
		}
	}
	return u
}

// first returns the block that stands for the owner.
func (u users) first(id string) string {
	for u[id] != id {
		u[id] = u[u[id]]
		id = u[id]
	}
	return id
}

// names numbers the owners by their first request.
func (u users) names(trc []trace.Request) map[string]string {
	names := map[string]string{}
	for _, q := range trc {
		if len(q.Docs) == 0 {
			continue
		}
		if first := u.first(q.Docs[0]); names[first] == "" {
			names[first] = "user-" + strconv.Itoa(len(names)+1)
		}
	}
	return names
}

// Write writes folder/trace.jsonl, folder/blocks.jsonl and folder/plan.jsonl: the trace as it comes out of memories, under their
// labels, and how it would be sent. The folder must exist.
func Write(ctx context.Context, trc []trace.Request, blocks *trace.Blocks, opts Options, folder string) (err error) {
	p, err := New(ctx, trc, blocks, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	writers := map[string]*trace.Writer{}
	for _, name := range []string{"trace", "blocks", "plan"} {
		w, createErr := trace.Create(filepath.Join(folder, name+".jsonl"))
		if createErr != nil {
			return createErr
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		writers[name] = w
	}
	for _, b := range p.Blocks {
		if err := writers["blocks"].WriteBlock(b); err != nil {
			return err
		}
	}
	for _, q := range trc {
		turn, err := p.Turn(ctx, q)
		if err != nil {
			return err
		}
		if err := errors.Join(writers["trace"].WriteRequest(turn.Request), writers["plan"].WritePlan(turn.Plan)); err != nil {
			return err
		}
	}
	return nil
}
