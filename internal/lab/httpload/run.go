package httpload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/pause"
	"github.com/ragpilot/ragpilot/internal/lab/load"
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
					pause.Until(ctx, now.Add(afterFailure))
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
		return pause.Until(ctx, due)
	}
	ok := pause.Until(ctx, due.Add(-timerLate))
	for left := time.Until(due); ok && left > 0; left = time.Until(due) {
		nap(left)
	}
	return ok && ctx.Err() == nil
}

// Defaults of [Load] and [Config].
const (
	DefaultMaxInFlight = 4096
	DefaultTimeout     = 30 * time.Second
)

// Load says when requests are sent: Rate or Clients is above 0.
type Load struct {
	// Rate is the number of requests due in a second, whatever becomes of them.
	Rate float64
	// Poisson draws the times between requests, with the mean that Rate gives; otherwise all are equal.
	Poisson bool
	Seed    uint64
	// Clients is the number of clients that each send a request when they have the answer to the one before.
	Clients int
	// MaxInFlight is the number of requests under way at a time at a rate; beyond it requests wait here, and are charged
	// with that. 0: [DefaultMaxInFlight].
	MaxInFlight int
}

// String says what load it is.
func (l Load) String() string {
	switch {
	case l.Clients > 0:
		return fmt.Sprintf("%d clients, one request after the other", l.Clients)
	case l.Poisson:
		return fmt.Sprintf("%g requests/s, Poisson", l.Rate)
	}
	return fmt.Sprintf("%g requests/s", l.Rate)
}

// validate also says that there are not more requests than one can hold.
func (l Load) validate(span time.Duration) error {
	switch {
	case l.Rate > 0 == (l.Clients > 0):
		return errors.New("want either a rate or a number of clients")
	case l.Clients < 0 || l.Rate < 0 || math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0) || l.MaxInFlight < 0:
		return errors.New("a rate, clients or bound below 0, or infinite")
	case l.Rate*span.Seconds() > 1e8:
		return fmt.Errorf("rate %g: more than a hundred million requests", l.Rate)
	}
	return nil
}

// dues returns when requests are due within a span, since its begin.
func (l Load) dues(span time.Duration) []time.Duration {
	mean := l.Rate * span.Seconds()
	if l.Poisson {
		enough := int(mean + 8*math.Sqrt(mean) + 32) // more than this come once in 10^15 runs
		all := load.Arrivals{Kind: load.Poisson, Rate: l.Rate}.Starts(enough, l.Seed)
		for i, due := range all {
			if due >= span {
				return all[:i]
			}
		}
		return all
	}
	out := make([]time.Duration, 0, int(mean)+1)
	for i := 0; ; i++ {
		due := time.Duration(float64(i) / l.Rate * float64(time.Second))
		if due >= span {
			return out
		}
		out = append(out, due)
	}
}
