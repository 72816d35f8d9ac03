package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/outbox"
)

// Engine is a simulated inference server. It starts no goroutines and needs no closing. All methods are safe for
// concurrent use.
type Engine struct {
	options Options
	lastID  atomic.Uint64
	prompts sync.Pool     // of *prompt, whose slices are worth keeping
	outbox  outbox.Outbox // has its own locks, taken after mu

	mu     sync.Mutex
	cache  cache                // guarded by mu
	queue  []*ticket            // guarded by mu
	stats  Stats                // guarded by mu; the fields that cannot be derived
	events []contextpilot.Event // guarded by mu; scratch
}

var _ engines.Engine = (*Engine)(nil)

// New returns an Engine with an empty cache.
func New(options Options) *Engine {
	options = options.withDefaults()
	return &Engine{options: options, cache: newCache(options)}
}

// Name says that this is a simulator, and with how large a cache.
func (e *Engine) Name() string {
	if e.options.CapacityTokens <= 0 {
		return "simulator (unlimited cache)"
	}
	return fmt.Sprintf("simulator (cache of %d tokens)", e.options.CapacityTokens)
}

// Generate runs one request, as [engines.Engine] says; the times in the response are those of [Cost], and nothing is waited for
// except room in the cache. While it runs, which includes the calls of onText, the request pins its blocks: a
// request that does not find enough blocks waits until others have ended, or ctx does. From onText, the engine
// must therefore only be called if there is room for both. A request with its answer that does not fit the empty
// cache is computed in full and caches nothing.
//
// The prompt is tokenised and hashed at each call, O(its length). MaxTokens cuts the answer after that many tokens.
func (e *Engine) Generate(
	ctx context.Context, req engines.Request, onText func(piece string) error,
) (engines.Response, error) {
	if req.ID == "" {
		req.ID = "sim-" + strconv.FormatUint(e.lastID.Add(1), 10)
	}
	response := engines.Response{ID: req.ID}
	if err := ctx.Err(); err != nil {
		return response, e.failed(req.ID, err)
	}
	fault := e.options.Fault(req)
	if fault != nil && fault.After <= 0 {
		return response, e.failed(req.ID, cmp.Or(fault.Err, engines.ErrUnreachable))
	}
	text, cut := truncate(e.options.Reply(req), req.MaxTokens)
	p := e.prompt(req, text)
	defer e.prompts.Put(p)
	if err := e.enter(ctx, p); err != nil {
		return response, e.failed(req.ID, err)
	}

	said, complete := 0, false
	defer func() { e.leave(p, said, complete) }() // also if onText panics: others wait for the blocks
	broken := func(said int) error {
		if fault != nil && (said == fault.After || said > 0 && said == p.answer) {
			return cmp.Or(fault.Err, engines.ErrInterrupted)
		}
		return ctx.Err()
	}
	if onText == nil {
		onText = func(string) error { return nil }
	}
	said, n, err := speak(text, broken, onText)
	said = min(said, p.answer) // an answer of white space only is one piece and no token
	response.Text = text[:n]
	response.Usage = engines.Usage{
		PromptTokens: p.tokens, OutputTokens: said, CachedTokens: p.cached(), CachedKnown: true,
	}
	response.TTFT, response.Total = e.options.Cost.times(p.tokens-p.cached(), said)
	if err != nil {
		if n > 0 && !errors.Is(err, engines.ErrInterrupted) {
			err = fmt.Errorf("%w: %w", engines.ErrInterrupted, err)
		}
		return response, e.failed(req.ID, err)
	}
	complete = true
	response.Finish = "stop"
	if cut {
		response.Finish = "length"
	}
	return response, nil
}

// Resident returns how many of the request's prompt tokens would be read from the cache if it were admitted now. It
// does not count as a use of them.
func (e *Engine) Resident(req engines.Request) int {
	p := e.prompt(req, "")
	defer e.prompts.Put(p)
	e.mu.Lock()
	defer e.mu.Unlock()
	p.blocks = e.cache.hits(p, p.blocks[:0])
	return len(p.blocks) * e.options.BlockTokens
}

// Subscribe registers a sink for what happens to the cache, see the package's documentation. Sinks are called without
// the engine's lock but one at a time, by the goroutine that runs Generate or Reset, before it returns; a sink must
// not call either. After cancel has returned, a sink may still get events that were already on their way.
func (e *Engine) Subscribe(sink func(events ...contextpilot.Event)) (cancel func()) {
	return e.outbox.Subscribe(sink)
}

// Reset empties the cache, reports Cleared, and forgets all requests. What running requests have cached is lost too.
func (e *Engine) Reset() {
	e.mu.Lock()
	e.cache.reset()
	e.put(append(e.events[:0], contextpilot.Event{Kind: contextpilot.Cleared}))
	e.mu.Unlock()
	e.outbox.Deliver()
}

// prompt tokenises and hashes the request and its answer.
func (e *Engine) prompt(req engines.Request, answer string) *prompt {
	p, _ := e.prompts.Get().(*prompt)
	if p == nil {
		p = new(prompt)
	}
	p.fill(req, answer, e.options.BlockTokens)
	return p
}

func (p *prompt) fill(req engines.Request, answer string, blockTokens int) {
	p.id = req.ID
	p.chain.reset(blockTokens)
	for _, m := range req.Messages {
		p.chain.add(m.Content)
	}
	p.tokens = p.chain.tokens
	p.chain.add(answer)
	p.answer = p.chain.tokens - p.tokens
}

func (p *prompt) fillSegments(from Prompt, blockTokens int) {
	p.chain.reset(blockTokens)
	for _, g := range from.Segments {
		p.chain.addSegment(g)
	}
	p.tokens = p.chain.tokens
	p.chain.addSegment(from.Answer)
	p.answer = p.chain.tokens - p.tokens
}

// cached returns how many tokens of an admitted prompt were read from the cache.
func (p *prompt) cached() int { return p.hits * p.chain.blockTokens }

func (e *Engine) failed(id string, err error) error {
	return fmt.Errorf("simulator: request %q: %w", id, err)
}

// Stats counts what went through an [Engine] since it was made, and says what it holds now.
type Stats struct {
	Requests     int // admitted to the cache, the oversize ones included
	PromptTokens int // of these requests
	HitTokens    int // of PromptTokens, read from the cache
	OutputTokens int // generated, those of broken-off answers included

	Oversize      int // requests whose prompt and answer did not fit the empty cache: computed in full, not cached
	EvictedBlocks int // blocks whose text was given up for another request

	Running        int // requests that pin their blocks now
	Waiting        int // requests that wait for free blocks now
	ResidentBlocks int // different blocks of text in the cache now; second copies are not counted
	CapacityBlocks int // 0: unlimited
	Followed       int // requests whose evictions would be reported now
}

// HitRatio returns the part of the prompt tokens that was read from the cache, from 0 to 1.
func (s Stats) HitRatio() float64 { return float64(s.HitTokens) / float64(max(1, s.PromptTokens)) }

// Stats returns the counts at one moment.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.EvictedBlocks = e.cache.evicted
	s.Waiting = len(e.queue)
	s.ResidentBlocks = len(e.cache.index.at)
	s.CapacityBlocks = e.cache.pool.limit
	s.Followed = len(e.cache.tracker.byID)
	return s
}
