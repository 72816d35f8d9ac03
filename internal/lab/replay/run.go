package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Job is one run of a trace through an engine.
type Job struct {
	Settings Settings
	Offline  bool // plan all requests together
	// Engine answers. Its events keep the index true, so it should be fresh, or Salt set.
	Engine engines.Engine
	// Salt, if not empty, is the first line of every prompt: runs on one engine do not meet in its cache.
	Salt string
	// Exact: the engine cuts texts into tokens as the simulator does, so that documents can be accounted.
	Exact     bool
	Model     string
	MaxTokens int
}

// Result is the result of a run. Document tokens are counted with the simulator's tokeniser; on another engine
// they are only known to the request's total, and DocTokens is 0.
type Result struct {
	Policy       string
	Requests     int
	PromptTokens int
	CachedTokens int
	CachedKnown  bool // every answer reported its cached tokens
	DocTokens    int  // of this turn's documents sent in full
	DocCached    int  // of those, read from the cache
	RefTokens    int  // of documents replaced by references
	EchoTokens   int  // of what is shown once more
	TTFT         []time.Duration
	Cached       []int // by request in execution order
}

// HitRatio is the share of prompt tokens that were read from the cache.
func (r Result) HitRatio() float64 { return figures.Ratio(r.CachedTokens, r.PromptTokens) }

// DocSaved is the share of retrieved document tokens that were read from the cache or replaced by references, less what was shown once
// more.
func (r Result) DocSaved() float64 {
	return figures.Ratio(r.DocCached+r.RefTokens-r.EchoTokens, r.DocTokens+r.RefTokens)
}

// Computed is the number of prompt tokens that had to be computed.
func (r Result) Computed() int { return r.PromptTokens - r.CachedTokens }

// Quantile returns the TTFT that the share q of requests does not exceed.
func (r Result) Quantile(q float64) time.Duration {
	return figures.Quantile(slices.Sorted(slices.Values(r.TTFT)), q)
}

// Run plans the trace and sends it, one request at a time. Later turns resend the recorded answers, not the
// engine's, so that all policies see the same conversations.
func Run(ctx context.Context, job Job, trc []trace.Request, blocks *trace.Blocks) (Result, error) {
	planner, err := NewPlanner(job.Settings, blocks)
	if err != nil {
		return Result{}, err
	}
	r := runner{job: job, planner: planner, talks: NewTalks(trc, blocks, job.Settings.History, job.Salt), lengths: map[string]int{}}
	r.res = Result{Policy: job.Settings.Policy, CachedKnown: true}
	defer job.Engine.Subscribe(planner.Pilot().Sink(contextpilot.Scope{}))()
	if !job.Offline {
		for _, q := range trc {
			if err := r.send(ctx, q, planner.Plan(q)); err != nil {
				return Result{}, err
			}
			planner.Answered(q)
		}
		return r.res, nil
	}
	plans, err := planner.PlanAll(ctx, trc, 1)
	if err != nil {
		return Result{}, err
	}
	byID := make(map[string]trace.Request, len(trc))
	for _, q := range trc {
		byID[q.ID] = q
	}
	for _, p := range plans {
		if err := r.send(ctx, byID[p.ID], p); err != nil {
			return Result{}, err
		}
	}
	return r.res, nil
}

type runner struct {
	job     Job
	planner *Planner
	res     Result
	talks   *Talks
	lengths map[string]int // session → tokens of its messages so far
}

func (r *runner) send(ctx context.Context, q trace.Request, p trace.Plan) error {
	talk, err := r.talks.Ask(q, p)
	if err != nil {
		return err
	}
	before := len(talk) - 1
	if before == 1 {
		r.lengths[q.Session] = tokens.Count(talk[0].Content)
	}
	resp, err := r.job.Engine.Generate(ctx, engines.Request{
		ID: RequestID(q), Model: r.job.Model, Messages: talk, MaxTokens: r.job.MaxTokens,
	}, nil)
	if err != nil {
		return fmt.Errorf("request %s of policy %s: %w", q.ID, r.job.Settings.Policy, err)
	}
	r.account(q, p, resp)
	r.lengths[q.Session] += tokens.Count(talk[before].Content) + tokens.Count(trace.Answer(q))
	return nil
}

// account adds one answer to the result.
func (r *runner) account(q trace.Request, p trace.Plan, resp engines.Response) {
	res, u := &r.res, resp.Usage
	res.Requests++
	res.PromptTokens += u.PromptTokens
	res.CachedTokens += u.CachedTokens
	res.CachedKnown = res.CachedKnown && u.CachedKnown
	res.TTFT = append(res.TTFT, resp.TTFT)
	res.Cached = append(res.Cached, u.CachedTokens)
	if !r.job.Exact {
		return
	}
	docs := 0
	for _, id := range p.Docs {
		docs += r.planner.lookup(id).tokens
	}
	for _, id := range p.Refs {
		res.RefTokens += r.planner.lookup(id).tokens
	}
	for _, id := range p.Echo {
		text, part := p.EchoText[id]
		if !part {
			text, _ = r.planner.blocks.Text(id)
		}
		res.EchoTokens += tokens.Count(trace.Doc(id, text))
	}
	res.DocTokens += docs
	res.DocCached += min(max(u.CachedTokens-r.lengths[q.Session], 0), docs)
}
