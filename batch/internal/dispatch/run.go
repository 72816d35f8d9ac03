package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/engines"
)

// maxStoring bounds the answers that wait for their store: beyond it no call begins.
const maxStoring = 256

// run is one call of [Dispatcher.Run]; guarded by the dispatcher's mu but for what never changes.
type run struct {
	ctx      context.Context // of calls; ends with the grace of the caller's
	cancel   context.CancelCauseFunc
	storeCtx context.Context
	store    func(context.Context, Answer) error
	over     chan struct{}

	tree    *tree
	replica *replica
	epoch   int // number of moves to other replicas
	hops    int // moves since the last answer
	left    int // calls that are not done
	flying  int // calls with the engine or on their way to the store
	held    int // refusals that are held back
	delayed []*item
	grace   *time.Timer
	err     error // why it stops; nil: it goes on
}

// track is what has become of an item so far.
type track struct {
	attempts int      // all
	failures int      // of them, in a way that counts
	schema   int      // answers that did not match
	failedOn *replica // where it failed last
	heard    int      // answers of that replica by then
	usage    engines.Usage
	reserved float64
	round    int // of the replica, when the attempt began
	epoch    int // of the run
	due      time.Time
	begun    bool    // the answer has
	text     string  // see flat
	prompt   *prompt // while the replica watches for its answer to begin
}

func newRun(ctx context.Context, d *Dispatcher, calls []Call, store func(context.Context, Answer) error) *run {
	least := d.config.MinShared
	if d.config.Concurrency == 1 { // nothing is in flight beside a call, and an engine with room for one prompt needs them in their order
		least = -1
	}
	r := &run{
		storeCtx: context.WithoutCancel(ctx), store: store, over: make(chan struct{}),
		tree: newTree(calls, least), left: len(calls),
	}
	base, cancel := context.WithCancelCause(r.storeCtx)
	r.ctx, r.cancel = base, cancel
	if end := d.config.Deadline; !end.IsZero() {
		var stop context.CancelFunc
		r.ctx, stop = context.WithDeadlineCause(base, end.Add(max(0, d.config.Grace)), ErrDeadline)
		r.cancel = func(cause error) {
			cancel(cause)
			stop()
		}
	}
	return r
}

// begin gives a run to a replica. d.mu is held, here and below.
func (d *Dispatcher) begin(r *run) {
	rep := d.choose(time.Now())
	r.replica = rep
	rep.add(r)
	r.tree.start()
	d.pump()
}

// interrupt stops a run whose context has ended.
func (d *Dispatcher) interrupt(r *run, cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		cause = fmt.Errorf("%w: %w", context.Canceled, cause)
	}
	d.stop(r, cause)
	if r.flying == 0 {
		return
	}
	if d.config.Grace <= 0 {
		r.cancel(cause)
		return
	}
	r.grace = time.AfterFunc(d.config.Grace, func() { r.cancel(cause) })
}

// stop keeps a run from sending more calls; the first reason counts.
func (d *Dispatcher) stop(r *run, err error) {
	if r.replica == nil {
		return // it has ended, and Run reads its error
	}
	if r.err == nil {
		r.err = err
	}
	d.settle(r)
}

// settle ends a run that has nothing more to do.
func (d *Dispatcher) settle(r *run) {
	if r.flying > 0 || r.left > 0 && r.err == nil || r.replica == nil {
		return
	}
	if r.grace != nil {
		r.grace.Stop()
	}
	rep := r.replica
	rep.drop(r)
	r.replica = nil
	close(r.over)
	d.judge(rep)
}

func (r *replica) drop(x *run) {
	r.recall(x)
	r.runs = slices.DeleteFunc(r.runs, func(y *run) bool { return y == x })
	r.unpark(x)
}

// stopAll stops all runs.
func (d *Dispatcher) stopAll(err error) {
	for _, rep := range d.replicas {
		for _, r := range slices.Clone(rep.runs) {
			d.stop(r, err)
		}
	}
}

// wake has the dispatcher look at what waits at a later time.
func (d *Dispatcher) wake(at time.Time) {
	if !d.due.IsZero() && !at.Before(d.due) {
		return
	}
	d.due = at
	wait := max(0, time.Until(at))
	if d.timer != nil {
		d.timer.Reset(wait)
		return
	}
	d.timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.due = time.Time{}
		d.pump()
	})
}

// pump begins all calls that may begin.
func (d *Dispatcher) pump() {
	if d.paused {
		return
	}
	now := time.Now()
	for _, rep := range d.replicas {
		d.fill(rep, now)
	}
}

// fill begins the calls that a replica may get.
func (d *Dispatcher) fill(rep *replica, now time.Time) {
	for _, r := range rep.runs {
		d.rouse(r, now)
	}
	if len(rep.runs) > 0 && now.Before(rep.rest) {
		d.wake(rep.rest)
		return
	}
	for rep.places() > 0 && d.storing < maxStoring {
		r, x := rep.next()
		if x == nil {
			rep.limiter.idle()
			return
		}
		if rep.park(r, x, d.config.MinShared) || !d.allowed(r, x, now) {
			continue
		}
		cost := d.purse.estimate(x)
		if !d.purse.fits(cost) {
			r.tree.push(x)
			if d.flying() == 0 {
				d.stopAll(fmt.Errorf("%w: %.6g of %.6g, and the next call may cost %.6g", ErrBudget, d.purse.spent, d.purse.most, cost))
			}
			return
		}
		d.launch(r, x, cost, now)
	}
}

// rouse ends delays that are over.
func (d *Dispatcher) rouse(r *run, now time.Time) {
	if r.err != nil {
		return
	}
	r.delayed = slices.DeleteFunc(r.delayed, func(x *item) bool {
		if now.Before(x.due) {
			d.wake(x.due)
			return false
		}
		r.tree.wake(x)
		return true
	})
}

// next takes the next call of the oldest run that has one.
func (r *replica) next() (*run, *item) {
	for _, x := range r.runs {
		if x.err != nil {
			continue
		}
		if it := x.tree.next(); it != nil {
			return x, it
		}
	}
	return nil, nil
}

// allowed reports whether a call that was taken may begin. One that may not is delayed, or its run stopped.
func (d *Dispatcher) allowed(r *run, x *item, now time.Time) bool {
	if end := d.config.Deadline; !end.IsZero() {
		took := time.Duration(d.mean.or(0) * float64(time.Second))
		if !now.Add(took).Before(end) {
			r.tree.push(x)
			d.stopAll(fmt.Errorf("%w: it is %s, and an answer takes %v", ErrDeadline, end.Format(time.RFC3339), took.Round(time.Millisecond)))
			return false
		}
	}
	if x.failures+x.schema > 0 {
		if ok, due := d.retries.take(now); !ok {
			d.later(r, x, due)
			return false
		}
	}
	return true
}

// flying returns the number of calls in flight.
func (d *Dispatcher) flying() int {
	n := 0
	for _, rep := range d.replicas {
		n += rep.flying
	}
	return n
}

// later delays a call.
func (d *Dispatcher) later(r *run, x *item, due time.Time) {
	x.due = due
	r.tree.back(x)
	r.delayed = append(r.delayed, x)
	d.wake(due)
}

// launch sends a call.
func (d *Dispatcher) launch(r *run, x *item, cost float64, now time.Time) {
	rep := r.replica
	x.attempts++
	x.round, x.epoch, x.reserved, x.begun = rep.round, r.epoch, cost, false
	if len(rep.runs) > 1 {
		rep.sent(x)
	}
	d.purse.reserved += cost
	rep.flying++
	rep.stats.Calls++
	if rep.began.IsZero() {
		rep.began = now
	}
	r.flying++
	go d.attempt(r, x, rep)
}
