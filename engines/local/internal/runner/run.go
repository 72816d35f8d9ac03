package runner

import (
	"container/list"
	"context"
	"slices"

	"github.com/ragpilot/ragpilot/engines/local/internal/kvstore"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

// Request is one sequence to continue, or to score.
type Request struct {
	Prompt []int32 // at least one token; with Max, or Forced, not more than the cache holds. It is not kept
	Salt   string  // requests with different salts share nothing
	// Prefix stands in front of the prompt; nil: nothing does. Its slots count as tokens of the prompt, and as cached.
	Prefix *kvstore.Prefix
	// Reuse has blocks of the prompt taken from where they were computed; nil: all that is taken from the cache is what the prompt's
	// tokens give. Not with a Prefix.
	Reuse *Reuse
	Max   int     // tokens to generate, at least one
	Stop  []int32 // tokens that end the answer and are not part of it
	// Sample chooses a token by its logits, which it may change. It is called for each token once, in order, by one
	// goroutine at a time, under no lock. nil: the token of the largest logit, of equal ones the first.
	Sample func(logits []float32) int32
	// Forced is the answer to be scored. If it is not nil nothing is generated: OnLogits is called with the logits
	// after the prompt and after each token of Forced, each once and in order, as Sample is; they are valid during the
	// call.
	Forced   []int32
	OnLogits func(logits []float32)
	// Watch collects, in each layer, what the first tokens of the answer attend to, as many as [Watched]; nil: nothing. It is the run's until
	// Result says that so many were seen, or the run has ended.
	Watch []*compute.Probe
}

// Watched is how many of an answer's first tokens [Request.Watch] sees.
const Watched = 16

// Result is what became of a run.
type Result struct {
	Cached  int    // tokens of the prompt that the run did not compute
	Finish  string // "stop" or "length"; empty if it has not ended, was cancelled or scored
	Watched int    // tokens of the answer that Request.Watch has seen
}

// Run is a request that was submitted. Its methods are safe for concurrent use, but for Next.
type Run struct {
	runner  *Runner
	request Request
	prompt  int           // tokens of it
	more    chan struct{} // has an element if out, or ended, changed since it was taken

	// Written by the loop alone, while the run is in its step.
	token  int32 // that was chosen
	rows   int   // of logits, that the sequence has given; only if they are scored
	scored int   // of these, those that OnLogits has had
	looks  bool  // Request.Watch is in the step
	behind int   // the first token that Request.Watch has not seen

	// The rest is guarded by the runner's lock.
	tokens    []int32 // prompt, and what was generated or is forced
	sequence  *kvstore.Sequence
	place     *list.Element // in waiting, or nil
	assembly  *assembly     // of a run with Reuse that has begun
	busy      bool          // it is in the step that is being computed
	step      int           // tokens in that step
	logits    int           // rows of logits that the step gives
	out       []int32
	again     bool // it was preempted
	cancelled bool
	ended     bool
	err       error
	result    Result
}

// Submit enters a request.
func (r *Runner) Submit(request Request) *Run {
	first := request.Prefix.Tokens()
	x := &Run{runner: r, request: request, prompt: first + len(request.Prompt), more: make(chan struct{}, 1), result: Result{Cached: -1}}
	x.tokens = slices.Grow(slices.Repeat([]int32{kvstore.Placeholder}, first), len(request.Prompt)+max(request.Max, len(request.Forced)))
	x.tokens = append(append(x.tokens, request.Prompt...), request.Forced...)
	x.request.Prompt = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		x.ended, x.err = true, ErrClosed
		x.notify()
		return x
	}
	x.place = r.waiting.PushBack(x)
	r.changed.Signal()
	return x
}

// Next waits for tokens, and returns those that were generated since it was called last. At the end it returns none and done. The
// error is ctx's, which cancels the run, or why the run ended.
func (x *Run) Next(ctx context.Context) (tokens []int32, done bool, err error) {
	for {
		select {
		case <-ctx.Done():
		case <-x.more:
		}
		if err := ctx.Err(); err != nil {
			x.Cancel(err)
			x.notify() // what was taken above is for the next call
			return nil, true, err
		}
		x.runner.mu.Lock()
		tokens, done, err = x.out, x.ended, x.err
		x.out = nil
		x.runner.mu.Unlock()
		if done {
			x.notify() // for the next call
		}
		if len(tokens) > 0 {
			return tokens, false, nil
		}
		if done {
			return nil, true, err
		}
	}
}

// Wait waits until the run has ended. After it nothing of the request is called any more. It must not be called together with Next.
func (x *Run) Wait() {
	for done := false; !done; {
		_, done, _ = x.Next(context.Background())
	}
}

// Cancel ends the run, if it has not ended. Its pages are free when Cancel returns, or when the step it is in has been computed.
func (x *Run) Cancel(err error) {
	r := x.runner
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.ended || x.cancelled {
		return
	}
	if x.busy {
		x.cancelled, x.err = true, err
		return
	}
	r.end(x, err)
	r.changed.Signal() // others may have room now, and the loop may wait for this run's files only
}

// Result returns what has become of the run so far.
func (x *Run) Result() Result {
	x.runner.mu.Lock()
	defer x.runner.mu.Unlock()
	x.look()
	result := x.result
	result.Cached = max(result.Cached, 0)
	return result
}

// look notes how much of the prompt was cached, unless that was known before the run was preempted.
func (x *Run) look() {
	if x.sequence != nil && !x.again {
		x.result.Cached = x.sequence.Cached()
	}
}

func (x *Run) notify() {
	select {
	case x.more <- struct{}{}:
	default:
	}
}

// begin makes the run's sequence. It reports false, and changes nothing, if there is no room. Of a forced answer logits are needed,
// though its tokens may be in the cache.
func (x *Run) begin(store *kvstore.Store) bool {
	if x.request.Reuse != nil {
		return x.beginReuse(store)
	}
	looked := len(x.tokens)
	if x.request.Forced != nil {
		looked = x.prompt
	}
	x.sequence = store.Begin(x.request.Prefix, x.tokens, looked, x.request.Salt)
	return x.sequence != nil
}

// assembling reports whether the blocks of the run's prompt are still being put in place.
func (x *Run) assembling() bool { return x.assembly != nil && x.assembly.phase != assembled }

// maxRows bounds the rows of logits that a scored run has in a step: each is as long as the vocabulary.
const maxRows = 32

// span is the run's part of a step of at most n tokens.
func (x *Run) span(n int) llama.Span {
	q := x.sequence
	from := q.Computed()
	x.logits = 0
	switch wanted := x.prompt - 1; { // the first token whose logits are scored
	case x.request.Forced != nil:
		n = min(n, max(0, wanted-from)+maxRows)
		x.logits = max(0, from+n-max(from, wanted))
	case from+n == len(q.Tokens()):
		x.logits = 1
	}
	x.step = n
	span := llama.Span{Tokens: q.Tokens()[from : from+n], Position: from, Pages: q.Pages(), Logits: x.logits}
	if x.greedy() {
		span.Best = &x.token
	}
	// One at a time: the rows that a preempted run computes once more are in longer spans.
	if x.looks = x.request.Watch != nil && n == 1 && from >= max(x.prompt, x.behind) && x.result.Watched < Watched; x.looks {
		span.Probes, x.behind = x.request.Watch, from+1
	}
	return span
}

// greedy reports whether the device chooses the run's tokens.
func (x *Run) greedy() bool { return x.request.Sample == nil && x.request.Forced == nil }

// rowsOfStep is how many rows of logits the run gets of a step.
func (x *Run) rowsOfStep() int {
	if x.greedy() {
		return 0
	}
	return x.logits
}

// choose takes the logits of a step.
func (x *Run) choose(logits []float32, vocab int) {
	switch {
	case len(logits) == 0:
	case x.request.Forced == nil:
		x.token = x.request.Sample(logits)
	default:
		for ; len(logits) > 0; logits = logits[vocab:] {
			if x.rows++; x.rows > x.scored {
				x.scored++
				x.request.OnLogits(logits[:vocab])
			}
		}
	}
}
