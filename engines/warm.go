package engines

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"hash/maphash"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// WarmerOptions configures a [Warmer]. Zero values are the recommended setup.
type WarmerOptions struct {
	// Engine is what the real requests are sent to, and the warm-ups. Required.
	Engine Engine
	// Pilot is what the real requests are planned with. Required.
	Pilot *contextpilot.Pilot
	// MinTokens is the number of tokens that must be missing in the engine's cache before they are computed ahead, so that
	// it is worth a request; 0: 64.
	MinTokens int
	// MaxGuess bounds the tokens of guessed blocks that are computed ahead of one request; 0: 2048; negative: nothing is guessed.
	MaxGuess int
	// Part is the number of tokens of guessed blocks that one request computes ahead, but at least a block. If the guess was
	// wrong, the real request waits for one of these at most, in an engine that does not stop before it has ended. 0: 128.
	Part int
	// MaxWarmups is the number of warm-ups at a time; more are not sent. 0: 4.
	MaxWarmups int
	// Unshared says that the engine computes a prompt anew while another one with the same beginning is still being
	// computed: llama.cpp with several slots. [Warming.Ready] then waits for the warm-ups that are right.
	Unshared bool
}

// Warmer computes the known beginning of prompts while their blocks are still being retrieved: system prompt and history at
// once, then blocks that will likely be retrieved, when they are guessed. Retrieval and prefill overlap, so that the
// first token comes after max(retrieval, head) + blocks instead of retrieval + head + blocks, where the head is not in the
// engine's cache (RAGCache++ §3.6; guesses are those of RAGCache's dynamic speculative pipelining). [Warmer.Retrieve] is all
// that most programs need; [Warmer.Begin] gives the parts.
//
// A warm-up is a request of its own for one token, whose text is not looked at. Nothing is sent if the beginning is expected in
// the cache: the pilot's index says so, which engines' events keep true. Heads that several requests need at the same time are
// computed once. A head is never in the pilot's index on account of a warm-up; a guess is, from when it is sent until
// it is cancelled or fails, so that the real request is planned to follow it.
//
// Warm-ups have no errors: one that fails is counted, and the real request is as slow as without it. Safe for concurrent
// use. A goroutine runs for each warm-up under way; [Warmer.Close] ends them.
type Warmer struct {
	opt   WarmerOptions
	probe contextpilot.Plan // of one block that no prompt has
	seed  maphash.Seed
	name  string // in front of the IDs of warm-ups
	next  atomic.Uint64
	wg    sync.WaitGroup
	count warmerCounters

	mu     sync.Mutex // taken after Warming.mu
	closed bool
	under  map[*warmup]struct{}           // under way
	heads  map[headKey]*warmup            // those of them that compute heads
	known  *lru.Cache[headKey, knownHead] // heads that were computed
}

// knownHead says how it is known that a head is resident.
type knownHead uint8

const (
	warmed  knownHead = iota // only by the Warmer: it was computed ahead, and no request has been planned since
	indexed                  // by the pilot, as long as it knows of any request in the scope
)

// maxKnown is the number of heads that a Warmer knows; programs have few.
const maxKnown = 1024

// NewWarmer returns a Warmer. An error names the option.
func NewWarmer(o WarmerOptions) (*Warmer, error) {
	switch {
	case o.Engine == nil:
		return nil, errors.New("engines: WarmerOptions.Engine is nil")
	case o.Pilot == nil:
		return nil, errors.New("engines: WarmerOptions.Pilot is nil")
	}
	if o.MinTokens <= 0 {
		o.MinTokens = 64
	}
	if o.MaxGuess == 0 {
		o.MaxGuess = 2048
	}
	if o.Part <= 0 {
		o.Part = 128
	}
	if o.MaxWarmups <= 0 {
		o.MaxWarmups = 4
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	probe, err := probePlan()
	if err != nil {
		return nil, err
	}
	return &Warmer{
		opt: o, probe: probe, seed: maphash.MakeSeed(), name: "warm-" + hex.EncodeToString(b[:]) + "-",
		under: map[*warmup]struct{}{}, heads: map[headKey]*warmup{}, known: lru.New[headKey, knownHead](maxKnown),
	}, nil
}

// Retrieve runs retrieve, computes meanwhile what is known of the prompt, and returns the plan for what was retrieved. req has no
// blocks yet. build makes the engine's request of a plan: it is called for the warm-ups with plans of its own, and by the
// caller for the real request, and must put the blocks at the same place each time. provisional takes what the search has found so
// far, best first, and may be called any number of times until retrieve returns, or not at all; it does not wait for the engine.
//
// The error is that of retrieve; what was begun is then cancelled. Otherwise the plan is like every plan: the request must be
// sent, or be taken back with a [contextpilot.Gone] event. The end of ctx ends the warm-ups, too.
func (w *Warmer) Retrieve(
	ctx context.Context, req contextpilot.Request, build func(*contextpilot.Plan) Request,
	retrieve func(ctx context.Context, provisional func([]contextpilot.Block)) ([]contextpilot.Block, error),
) (contextpilot.Plan, error) {
	x := w.Begin(ctx, req, build)
	found := false
	defer func() {
		if !found { // also if retrieve panics
			x.Cancel()
		}
	}()
	blocks, err := retrieve(ctx, x.Guess)
	if err != nil {
		return contextpilot.Plan{}, err
	}
	req.Blocks = blocks
	plan := w.opt.Pilot.Plan(req)
	found = true
	x.Ready(&plan)
	return plan, nil
}

// Close cancels the warm-ups that are under way and waits until the engine has let go of them. Requests that are begun later are not
// warmed up, which is all that they notice.
func (w *Warmer) Close() {
	w.mu.Lock()
	w.closed = true
	for u := range w.under {
		w.cancel(u)
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// WarmerStats counts what a [Warmer] has done.
type WarmerStats struct {
	Sent      int64 // requests given to the engine
	Shared    int64 // not sent because the same was being computed for another request
	Skipped   int64 // not sent because too little was missing, too many were under way, or the Warmer is closed
	Cancelled int64 // given up: the guess was wrong, or the request is gone
	Failed    int64 // the engine could not be reached, or refused them
	Computed  int64 // tokens that they computed, as far as the engine says
}

type warmerCounters struct{ sent, shared, skipped, cancelled, failed, computed atomic.Int64 }

// Stats returns the counters.
func (w *Warmer) Stats() WarmerStats {
	c := &w.count
	return WarmerStats{c.sent.Load(), c.shared.Load(), c.skipped.Load(), c.cancelled.Load(), c.failed.Load(), c.computed.Load()}
}

func (w *Warmer) id() string { return w.name + strconv.FormatUint(w.next.Add(1), 36) }
