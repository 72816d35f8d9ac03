package httpload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Config describes a run.
type Config struct {
	Target *Target
	Bodies Bodies
	Load   Load
	// WarmUp is the time whose requests are not measured, Duration that whose are.
	WarmUp, Duration time.Duration
	// Timeout bounds a request from when it is sent; 0: [DefaultTimeout].
	Timeout time.Duration
	// Precise sends requests at a rate within about 0.1 ms of when they are due, where the system can (Linux), and not up to
	// 1 ms late. It keeps a thread of the system asleep in place of a timer, and is not for testing/synctest.
	Precise bool
}

func (c Config) withDefaults() (Config, error) {
	if c.WarmUp < 0 || c.Duration <= 0 || c.Timeout < 0 {
		return c, fmt.Errorf("warm-up %v, duration %v, timeout %v: want a duration above 0 and none below", c.WarmUp, c.Duration, c.Timeout)
	}
	if c.Target == nil || c.Bodies == nil {
		return c, errors.New("no target or no bodies")
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Load.MaxInFlight == 0 {
		c.Load.MaxInFlight = DefaultMaxInFlight
	}
	return c, c.Load.validate(c.WarmUp + c.Duration)
}

// Run loads one server. It returns when all answers are there, at the latest twice the timeout after the time is over:
// what was due and could not be sent a timeout after that counts as an error. It ends early with ctx, whose cause it then
// returns.
func Run(ctx context.Context, c Config) (Report, error) {
	c, err := c.withDefaults()
	if err != nil {
		return Report{}, err
	}
	var total tally
	r := runner{Config: c, ids: newIDs()}
	r.run(ctx, c.Target, c.WarmUp, c.Duration, &total)
	if ctx.Err() != nil {
		return Report{}, context.Cause(ctx)
	}
	return total.report(c.Target.Name, c.Load, c.Duration), nil
}

// runner sends requests. What it has sent before numbers its requests.
type runner struct {
	Config
	ids  ids
	next int // number of the next request; used by one goroutine, or by clients under mu

	mu sync.Mutex
}

// run loads a target for a time, the part after warmUp into t, and returns when all goroutines it started have ended.
func (r *runner) run(ctx context.Context, target *Target, warmUp, duration time.Duration, t *tally) {
	start := time.Now()
	w := window{target: target, from: start.Add(warmUp), to: start.Add(warmUp + duration), tally: t}
	if r.Load.Clients > 0 {
		r.closed(ctx, w)
	} else {
		r.open(ctx, start, w)
	}
}

// window is what is measured: requests due, or sent by clients, from a time on to another.
type window struct {
	target   *Target
	from, to time.Time
	tally    *tally
}

// open sends requests by the clock. Each body is made before its request is due.
func (r *runner) open(ctx context.Context, start time.Time, w window) {
	var group sync.WaitGroup
	defer group.Wait()
	free := make(chan struct{}, r.Load.MaxInFlight)
	giveUp := w.to.Add(r.Timeout)
	for _, after := range r.Load.dues(w.to.Sub(start)) {
		due, n := start.Add(after), r.next
		r.next++
		body := r.Bodies.Body(n)
		if !r.wait(ctx, due) {
			return
		}
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if time.Now().After(giveUp) {
			<-free
			w.unsent(due)
			continue
		}
		group.Go(func() {
			r.send(ctx, w, due, body, n)
			<-free
		})
	}
}

// afterFailure is the least time from a client's failed request to its next one: a server that is down is not
// asked as fast as it refuses.
const afterFailure = 10 * time.Millisecond

// closed lets each client send one request after the other.
func (r *runner) closed(ctx context.Context, w window) {
	var group sync.WaitGroup
	for range r.Load.Clients {
		group.Go(func() {
			for ctx.Err() == nil {
				r.mu.Lock()
				n := r.next
				r.next++
				r.mu.Unlock()
				body := r.Bodies.Body(n)
				now := time.Now()
				if !now.Before(w.to) {
					return
				}
				if !r.send(ctx, w, now, body, n) {
					sleepUntil(ctx, now.Add(afterFailure))
				}
			}
		})
	}
	group.Wait()
}

// send sends one request and counts it, if it was due within the window. It returns whether it was answered.
func (r *runner) send(ctx context.Context, w window, due time.Time, body []byte, n int) bool {
	sent := time.Now()
	limited, cancel := context.WithTimeout(ctx, r.Timeout)
	o := w.target.shoot(limited, body, r.ids.of(n))
	cancel()
	done := time.Now()
	if ctx.Err() == nil && !due.Before(w.from) {
		w.tally.count(due, sent, done, o)
	}
	return o.problem == ""
}

// unsent counts a request whose turn never came.
func (w window) unsent(due time.Time) {
	if !due.Before(w.from) {
		w.tally.problem("not sent", "more requests were due than could be sent until a timeout after the end")
	}
}

// timerLate is how late a timer may fire, with a reserve: the poller that it rests on counts milliseconds.
const timerLate = 1500 * time.Microsecond

// wait waits until a request is due, and returns false if ctx ended first.
func (r *runner) wait(ctx context.Context, due time.Time) bool {
	if !r.Precise {
		return sleepUntil(ctx, due)
	}
	ok := sleepUntil(ctx, due.Add(-timerLate))
	for left := time.Until(due); ok && left > 0; left = time.Until(due) {
		nap(left)
	}
	return ok && ctx.Err() == nil
}

// sleepUntil waits, and returns false if ctx ended first.
func sleepUntil(ctx context.Context, due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
