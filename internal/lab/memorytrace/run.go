package memorytrace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/inmem"
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
	store, err := memory.New(inmem.New(), memory.Config{Embedder: memory.Lexical})
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
	done, err := p.store.Add(ctx, scope, []memory.Message{{Role: memory.User, Content: b.Text}}, memory.AddOptions{Extractor: memory.Everything{}})
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
