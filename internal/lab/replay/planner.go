// Package replay runs recorded retrieval through a pilot and, if asked, through an engine: what `ragpilot plan`
// and `ragpilot replay` do.
package replay

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Settings say how a trace is planned.
type Settings struct {
	Policy   string
	Dedup    bool // blocks shown earlier in the session become references
	History  bool // each turn resends the conversation; without it every request is a first turn
	K        int  // use the first K documents of each request; 0: all
	Capacity int  // index capacity in tokens; 0: unlimited
	Notes    contextpilot.Notes
	Limits   contextpilot.Limits
	// Top and EchoTokens are those of a pilot's Config.
	Top        contextpilot.Top
	EchoTokens int
	// Tokenizer counts texts as the engine does that reports its cache in tokens; nil: as the simulator and the judge of plans do.
	Tokenizer contextpilot.Tokenizer
}

// maxSessions bounds the conversations whose history is kept.
const maxSessions = 100_000

// Planner plans the requests of one trace. Not safe for concurrent use.
type Planner struct {
	// Explain, if not nil, is called with every plan.
	Explain func(trace.Request, *contextpilot.Plan)

	set    Settings
	pilot  *contextpilot.Pilot
	blocks *trace.Blocks
	head   int
	known  map[string]known         // block ID → what rendering it gave
	talks  *lru.Cache[string, talk] // by session
}

// talk is a session so far.
type talk struct {
	texts []string // sent and received
	end   contextpilot.Position
}

type known struct {
	text   string // rendered
	tokens int
}

// NewPlanner returns a Planner; an unknown policy is an error that lists the known ones.
func NewPlanner(set Settings, blocks *trace.Blocks) (*Planner, error) {
	if set.Tokenizer == nil {
		set.Tokenizer = exact{}
	}
	cfg := contextpilot.Config{
		Policy: set.Policy, Dedup: contextpilot.DedupOff, Capacity: set.Capacity, MaxRequests: -1,
		Notes: set.Notes, Limits: set.Limits, Top: set.Top, EchoTokens: set.EchoTokens, Tokenizer: set.Tokenizer,
	}
	cfg.Notes.Location = reference
	if set.Dedup {
		cfg.Dedup = contextpilot.DedupID // a plan file names a reference by the ID that was shown
	}
	pilot, err := contextpilot.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Planner{
		set: set, pilot: pilot, blocks: blocks, head: set.Tokenizer.Count(trace.System),
		known: map[string]known{}, talks: lru.New[string, talk](maxSessions),
	}, nil
}

// reference is a location note of as many tokens as a reference in a trace's prompt has, see trace.Prompts.
const reference = "[doc {label} see above]"

// exact counts tokens as the simulator and the judge of plans do.
type exact struct{}

func (exact) Count(text string) int { return tokens.Count(text) }

// Pilot gives access to the pilot, for its statistics and for engines' events.
func (p *Planner) Pilot() *contextpilot.Pilot { return p.pilot }

// Plan plans the next request of the trace. Answered must follow before the next turn of its session.
func (p *Planner) Plan(q trace.Request) trace.Plan { return p.PlanWith(q, p.pilot.Plan) }

// PlanWith is [Planner.Plan] where something else asks the pilot: what chooses the scope, too.
func (p *Planner) PlanWith(q trace.Request, plan func(contextpilot.Request) contextpilot.Plan) trace.Plan {
	made := plan(p.request(q))
	p.explain(q, &made)
	return p.record(q, &made, p.set.History)
}

// Answered records that the request reached the engine and that the recorded answer follows its prompt.
func (p *Planner) Answered(q trace.Request) { p.AnsweredIn(contextpilot.Scope{}, q) }

// AnsweredIn is [Planner.Answered] for a request that was planned in a scope of its own.
func (p *Planner) AnsweredIn(scope contextpilot.Scope, q trace.Request) {
	p.pilot.Observe(contextpilot.Event{
		Kind: contextpilot.Served, Scope: scope, Request: RequestID(q),
		Output: p.set.Tokenizer.Count(trace.Answer(q)),
	})
}

// PlanAll plans a whole trace offline and returns the plans in execution order. First turns are planned as one
// batch; the later turns of a session follow its first turn at once, since only they can reuse its history. With
// concurrency n > 1 the schedule is cut into n lanes, and every n plans in a row are one of each lane, as long as no lane
// has run out.
func (p *Planner) PlanAll(ctx context.Context, trc []trace.Request, concurrency int) ([]trace.Plan, error) {
	var first []int
	later := map[string][]int{}
	turns := map[string]int{}
	for i, q := range trc {
		turns[q.Session]++
		if p.set.History && turns[q.Session] > 1 {
			later[q.Session] = append(later[q.Session], i)
			continue
		}
		first = append(first, i)
	}
	reqs := make([]contextpilot.Request, len(first))
	for i, k := range first {
		reqs[i] = p.request(trc[k])
		if turns[trc[k].Session] == 1 {
			reqs[i].Session = "" // nothing to remember
		}
	}
	batch, err := p.pilot.PlanBatch(ctx, reqs)
	if err != nil {
		return nil, fmt.Errorf("plan %d requests: %w", len(reqs), err)
	}
	lanes := batch.Lanes(concurrency)
	lines := make([][]trace.Plan, len(lanes))
	for l, lane := range lanes {
		for _, i := range lane {
			q := trc[first[i]]
			p.explain(q, &batch.Plans[i])
			lines[l] = append(lines[l], p.record(q, &batch.Plans[i], len(later[q.Session]) > 0))
			p.Answered(q)
			for _, k := range later[q.Session] {
				lines[l] = append(lines[l], p.Plan(trc[k]))
				p.Answered(trc[k])
			}
		}
	}
	return interleave(lines), nil
}

// interleave takes one line of each lane after the other.
func interleave(lanes [][]trace.Plan) (out []trace.Plan) {
	for i, more := 0, true; more; i++ {
		more = false
		for _, lane := range lanes {
			if i < len(lane) {
				out = append(out, lane[i])
				more = true
			}
		}
	}
	return out
}

func (p *Planner) explain(q trace.Request, plan *contextpilot.Plan) {
	if p.Explain != nil {
		p.Explain(q, plan)
	}
}

// RequestID is the ID under which a request of a trace is planned and sent. IDs and sessions of a trace may be empty,
// which means something else to a pilot.
func RequestID(q trace.Request) string { return "r" + q.ID }

func (p *Planner) request(q trace.Request) contextpilot.Request {
	docs := q.First(p.set.K).Docs
	req := contextpilot.Request{
		ID: RequestID(q), Query: trace.Question(q.Query), HeadTokens: p.head, Session: "s" + q.Session,
		Blocks: make([]contextpilot.Block, len(docs)),
	}
	for i, id := range docs {
		text, _ := p.blocks.Text(id)
		req.Blocks[i] = contextpilot.Block{ID: id, Text: text, Tokens: p.lookup(id).tokens}
	}
	if p.set.History {
		t, _ := p.talks.Get(q.Session)
		req.Prior, req.Behind = t.texts, t.end
	}
	return req
}

func (p *Planner) lookup(id string) known {
	k, ok := p.known[id]
	if !ok {
		text, _ := p.blocks.Text(id)
		k = known{tokens: p.set.Tokenizer.Count(trace.Doc(id, text))}
		p.known[id] = k
	}
	return k
}

// record turns a plan into a line of a plan file and, if more turns may follow, adds the turn to its session's history.
func (p *Planner) record(q trace.Request, plan *contextpilot.Plan, more bool) trace.Plan {
	line := trace.Plan{ID: q.ID, Session: q.Session, Turn: q.Turn, Docs: []string{}, Refs: []string{}, Hint: plan.Hint}
	var said []string
	for i, it := range plan.Items {
		id := plan.Block(it.Index).ID
		if it.Ref != nil {
			line.Refs = append(line.Refs, id)
			said = append(said, plan.RenderItem(i))
			continue
		}
		line.Docs = append(line.Docs, id)
		if !more {
			continue
		}
		k := p.lookup(id)
		if k.text == "" {
			k.text = plan.RenderItem(i)
			p.known[id] = k
		}
		said = append(said, k.text)
	}
	if e := plan.Echo; e != nil {
		id := plan.Block(e.Index).ID
		line.Echo = []string{id}
		if e.Text != plan.Block(e.Index).Text {
			line.EchoText = map[string]string{id: e.Text}
		}
		said = append(said, plan.RenderEcho())
	}
	if more {
		t, _ := p.talks.Get(q.Session)
		t.texts = append(append(t.texts, said...), line.Hint, trace.Question(q.Query), trace.Answer(q))
		t.end = plan.End.Answered(p.set.Tokenizer.Count(trace.Answer(q)))
		p.talks.Put(q.Session, t)
	}
	return line
}
