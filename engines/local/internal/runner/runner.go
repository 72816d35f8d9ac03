package runner

import (
	"container/list"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvstore"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// Config holds the settings of a Runner. All must be set but OnEvents and Files.
type Config struct {
	Model   *llama.Model
	Threads int
	Pages   int // of the cache
	Running int // sequences at a time
	Step    int // tokens of prompts in a step
	// OnEvents takes what the cache stored and gave up, in order, one call at a time and under no lock. It must not block for long.
	OnEvents func([]kvevents.Event)
	// Files is the tier below memory; nil: none. It must stay open until Close has returned.
	Files Files
	// SaltedFiles keeps pages of requests with a salt there, too.
	SaltedFiles bool
	// Medium is where events say that the tier's pages lie; empty: [kvstore.Disk].
	Medium string
}

// ErrClosed is the error of runs that a closed Runner ends.
var ErrClosed = errors.New("closed")

// Runner runs requests. All methods are safe for concurrent use. It has one goroutine until Close returns.
type Runner struct {
	config Config
	worker *llama.Worker // of the loop
	done   chan struct{} // closed when the loop has ended
	spans  []llama.Span  // of the loop
	// delivering, of the loop, are of the Clears whose events it is delivering.
	delivering []chan struct{}

	mu      sync.Mutex
	changed *sync.Cond // guarded by mu: something for the loop to do
	store   *kvstore.Store
	waiting *list.List // of *Run: those that were preempted, then the others in order of arrival
	running []*Run     // in order of admission
	step    []*Run     // those in the step that is being computed; only the loop changes it
	closed  bool
	cleared []chan struct{} // closed when the events of a Clear have been delivered
	disk    *disk           // nil: none
	pace    time.Duration   // that computing a token of a prompt takes, a moving mean; 0: unknown
	stats   Stats
}

// Stats are what a Runner did, and does.
type Stats struct {
	kvstore.Stats
	Running, Waiting int
	Steps            int64
	Prompt           int64 // tokens of prompts that were computed, with those computed again
	Generated        int64 // tokens
	Preemptions      int64
}

// New returns a Runner that waits for requests. On a device with memory of its own [Runner.Reserve] must follow.
func New(config Config) (*Runner, error) {
	worker, err := config.Model.NewWorker(config.Threads)
	if err != nil {
		return nil, err
	}
	r := &Runner{config: config, worker: worker, done: make(chan struct{}), waiting: list.New()}
	r.changed = sync.NewCond(&r.mu)
	var tier kvstore.Tier
	if config.Files != nil {
		r.disk = newDisk(r)
		tier = r.disk
	}
	r.store = kvstore.New(config.Pages, config.Model.Pool(), tier)
	if r.disk != nil {
		r.disk.start()
	}
	go r.loop()
	return r, nil
}

// Close ends all runs with ErrClosed and waits for the step that is being computed, and until pages are in their files.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	r.changed.Signal()
	r.mu.Unlock()
	<-r.done
	if r.disk != nil {
		r.disk.close()
	}
	r.worker.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store.Close()
}

// Stats returns the counters.
func (r *Runner) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Stats, s.Running, s.Waiting = r.store.Stats(), len(r.running), r.waiting.Len()
	return s
}

// Prefix returns how many of a prompt's first tokens are in the cache.
func (r *Runner) Prefix(tokens []int32, salt string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store.Prefix(tokens, salt)
}

// Reserve allocates what requests will need on a device with memory of its own: all pages that are not there yet, and the memory of a step.
// It must be called before the first request, and behind the last Pin. On other devices it does nothing.
func (r *Runner) Reserve() error {
	m := r.config.Model
	if !gpu.OwnMemory(m.Device()) {
		return nil
	}
	tokens := r.config.Step + r.config.Running
	pages, err := m.NewPages((tokens + llama.PageTokens - 1) / llama.PageTokens)
	if err == nil {
		span := llama.Span{Tokens: make([]int32, tokens), Pages: pages, Logits: min(tokens, max(r.config.Running, maxRows))}
		if err = m.Pool().Write(pages[0], make([]float32, m.PageFloats())); err == nil {
			_, err = r.worker.Forward([]llama.Span{span})
		}
		m.FreePages(pages) // the store gets them
	}
	if err != nil {
		return fmt.Errorf("a step of %d tokens: %w", tokens, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.store.Reserve(); err != nil {
		return fmt.Errorf("%d blocks of keys and values: %w", r.config.Pages, err)
	}
	return nil
}

// Pin keeps pages that requests may have in front of their prompts, as [kvstore.Store.Pin] does. nil: there is no room.
func (r *Runner) Pin(id [32]byte, pages []gpu.Page) *kvstore.Prefix {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store.Pin(id, pages)
}

// Clear empties the cache, but for what runs use. OnEvents has had the event when Clear returns; it must not be called from there.
func (r *Runner) Clear() {
	delivered := make(chan struct{})
	r.mu.Lock()
	r.store.Clear()
	r.cleared = append(r.cleared, delivered)
	r.changed.Signal()
	r.mu.Unlock()
	select {
	case <-delivered:
	case <-r.done:
	}
}

// loop computes steps until the Runner is closed.
func (r *Runner) loop() {
	defer close(r.done)
	for r.begin() {
		logits, took, err := r.compute()
		var events []kvevents.Event
		if err == nil {
			for _, x := range r.step {
				n := x.rowsOfStep() * r.config.Model.Vocab
				x.choose(logits[:n], r.config.Model.Vocab)
				logits = logits[n:]
			}
			events = r.finish(took)
		} else {
			events = r.fail(err)
		}
		if len(events) > 0 && r.config.OnEvents != nil {
			r.config.OnEvents(events)
		}
		for _, delivered := range r.delivering {
			close(delivered)
		}
	}
}

// compute does what the step needs, and returns its logits and how long its forward pass took. An error is the device's; nothing of the
// step is being computed any more then.
func (r *Runner) compute() (logits []float32, took time.Duration, err error) {
	defer func() {
		if err != nil {
			_ = r.worker.Sync() // what was begun may write to pages, and to probes
		}
	}()
	for _, x := range r.step {
		if x.assembling() && x.assembly.phase == copying {
			if err := x.assembly.work(r.config.Model, r.worker); err != nil {
				return nil, 0, err
			}
		}
	}
	began := time.Now()
	logits, err = r.worker.Forward(r.spans)
	return logits, time.Since(began), err
}

// fail ends the runs of a step that could not be computed, and returns what the cache gave up. The operation that failed may have been a
// copy to any page: so the cache is emptied, and runs that were not in the step begin again.
func (r *Runner) fail(err error) []kvevents.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store.Clear()
	for _, x := range r.step {
		x.step, x.busy, x.looks = 0, false, false
		reason := err
		if x.cancelled {
			reason = x.err
		}
		r.end(x, reason)
	}
	r.step = r.step[:0]
	for len(r.running) > 0 {
		r.again(r.running[len(r.running)-1])
	}
	return r.store.Events()
}

// begin waits for something to do and makes the next step of it. It reports false when the Runner is closed and all runs have ended.
func (r *Runner) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed && !r.ready() {
		r.changed.Wait()
	}
	if r.closed {
		for len(r.running) > 0 {
			r.end(r.running[0], ErrClosed)
		}
		for r.waiting.Len() > 0 {
			r.end(r.waiting.Front().Value.(*Run), ErrClosed)
		}
		return false
	}
	return true
}

// ready makes the next step. It reports whether there is something to do: not if nothing runs, or all that runs waits for files.
func (r *Runner) ready() bool {
	r.delivering, r.cleared = r.cleared, nil
	r.admit()
	r.plan()
	return len(r.step) > 0 || len(r.delivering) > 0
}

// admit begins the sequences of waiting runs, in order, while there is room.
func (r *Runner) admit() {
	for first := r.waiting.Front(); first != nil && len(r.running) < r.config.Running; first = r.waiting.Front() {
		x := first.Value.(*Run)
		if !x.begin(r.store) {
			return
		}
		r.running = append(r.running, x)
		r.unqueue(x)
		if r.disk != nil {
			r.disk.enqueue(r.store.Loads())
		}
	}
}

// plan makes the next step: first the tokens that were generated last, then parts of prompts in the order of admission.
func (r *Runner) plan() {
	r.step, r.spans = r.step[:0], r.spans[:0]
	budget := r.config.Step
	for _, parts := range []bool{false, true} {
		for _, x := range r.running {
			if missing := len(x.sequence.Tokens()) - x.sequence.Computed(); parts != (missing > 1) {
				continue
			}
			limit := 1
			if parts {
				limit = budget
			}
			if x.assembling() {
				limit = r.assemble(x, limit)
			} else if limit = x.sequence.Ready(limit); limit > 0 {
				r.spans = append(r.spans, x.span(limit))
			}
			if limit == 0 && !x.busy {
				continue
			}
			x.busy = true
			r.step = append(r.step, x)
			if parts {
				budget -= x.step
			}
		}
	}
	if len(r.step) > 0 {
		r.stats.Steps++
	}
}

// assemble adds at most limit tokens of a run's reused blocks, and returns how many. A run that has its blocks put in place is
// busy without.
func (r *Runner) assemble(x *Run, limit int) int {
	x.step, x.logits = 0, 0
	if x.assembly.phase == copying {
		x.busy = true
		return 0
	}
	spans, n := x.assembly.spans(limit, r.config.Model.Layers)
	r.spans = append(r.spans, spans...)
	x.step = n
	return n
}

// finish takes over what a step has computed in some time, and returns what the cache stored and gave up.
func (r *Runner) finish(took time.Duration) []kvevents.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	tokens := 0
	for _, x := range r.step {
		tokens += x.step
		if x.assembling() {
			r.assembled(x)
		} else {
			from := x.sequence.Computed()
			r.stats.Prompt += int64(max(0, min(from+x.step, x.prompt)-from))
			x.sequence.Advance(x.step)
			if x.looks {
				x.result.Watched++
			}
		}
		x.step, x.busy, x.looks = 0, false, false
	}
	if tokens >= kvstore.PageTokens { // fewer read the weights for each token
		r.pace = mean(r.pace, took/time.Duration(tokens))
	}
	if r.disk != nil && r.store.HasUnsaved() {
		r.disk.work.Broadcast()
	}
	for _, x := range r.step { // first, so that they make room
		if x.cancelled {
			r.end(x, x.err)
		}
	}
	for _, x := range r.step {
		switch {
		case x.ended || x.logits == 0:
		case x.request.Forced != nil:
			if x.scored > len(x.request.Forced) {
				r.end(x, nil)
			}
		default:
			r.stats.Generated++
			r.next(x)
		}
	}
	r.step = r.step[:0]
	return r.store.Events()
}

// assembled takes over what a step has computed of a run's reused blocks. Behind the last of them it goes on as any other.
func (r *Runner) assembled(x *Run) {
	r.stats.Prompt += int64(x.step)
	x.assembly.advance(r.config.Model, x.step)
	if !x.assembling() {
		x.sequence.Assembled(x.assembly.tail, x.assembly.counted)
	}
}

// next takes the token that a run has generated. The run may have lost its pages to another one in the same step; it will go on from
// this token.
func (r *Runner) next(x *Run) {
	if slices.Contains(x.request.Stop, x.token) {
		x.result.Finish = "stop"
		r.end(x, nil)
		return
	}
	x.tokens = append(x.tokens, x.token)
	x.out = append(x.out, x.token)
	x.notify()
	if len(x.tokens)-x.prompt == x.request.Max {
		x.result.Finish = "length"
		r.end(x, nil)
		return
	}
	for x.sequence != nil && !x.sequence.Append(x.token) {
		r.preempt(r.running[len(r.running)-1])
	}
}

// preempt makes a run wait again, before all others. What it has generated is kept.
func (r *Runner) preempt(x *Run) {
	r.stats.Preemptions++
	r.again(x)
}

// again has a run begin again.
func (r *Runner) again(x *Run) {
	r.leave(x)
	x.again = true
	x.place = r.waiting.PushFront(x)
}

// leave takes a run's pages.
func (r *Runner) leave(x *Run) {
	if x.sequence == nil {
		return
	}
	x.look()
	x.assembly.close()
	x.sequence.Close()
	x.sequence, x.rows = nil, 0
	r.running = slices.DeleteFunc(r.running, func(o *Run) bool { return o == x })
}

// unqueue takes a run from those that wait.
func (r *Runner) unqueue(x *Run) {
	if x.place != nil {
		r.waiting.Remove(x.place)
		x.place = nil
	}
}

// end ends a run.
func (r *Runner) end(x *Run, err error) {
	r.leave(x)
	r.unqueue(x)
	x.ended, x.err = true, err
	x.notify()
}
