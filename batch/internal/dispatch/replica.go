package dispatch

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// strangers is how many different calls must fail in a row before the engine is to blame and not the calls.
const strangers = 5

// replica is one engine with what is known of it; guarded by the dispatcher's mu.
type replica struct {
	Replica
	limiter limiter
	runs    []*run // that have calls for it, oldest first
	flying  int

	fails int       // rounds in a row in which it took no call
	round int       // number of its rests
	rest  time.Time // until then it gets no call
	trial bool      // it has not answered since it failed: one call at a time
	last  error     // why it rests
	ill   []*item   // different calls that failed in a row
	doubt doubt
	beside

	stats ReplicaStats
	began time.Time // of the first call
}

// places returns how many more calls it may get.
func (r *replica) places() int {
	if r.trial {
		return 1 - r.flying
	}
	return r.limiter.places() - r.flying
}

// left returns the number of calls that its runs still have.
func (r *replica) left() int {
	n := 0
	for _, x := range r.runs {
		n += x.left
	}
	return n
}

// answered notes that it works.
func (r *replica) answered() {
	r.fails, r.trial, r.rest, r.last = 0, false, time.Time{}, nil
	r.ill = r.ill[:0]
}

// failed notes that it took no call, or failed too many. A call that began before its last rest says nothing new.
func (r *replica) failed(d *Dispatcher, now time.Time, x *item, f fault) {
	if x.round != r.round {
		return
	}
	r.fails++
	r.round++
	r.last = f.err
	wait := max(d.backoff(r.fails), f.after)
	r.rest = now.Add(wait)
	if d.config.Resting != nil {
		d.config.Resting(r.Name, wait, f.err)
	}
	if f.kind == KindBusy {
		r.limiter.refused(now)
	} else {
		r.trial = true
	}
}

// suspect notes that a call failed, and reports whether so many did in a row that the engine must be ill. A call that failed before says
// nothing of the engine if that has answered others in between.
func (r *replica) suspect(x *item) bool {
	again := x.failedOn == r && r.stats.Answers > x.heard
	x.failedOn, x.heard = r, r.stats.Answers
	if !again && !slices.Contains(r.ill, x) {
		r.ill = append(r.ill, x)
	}
	return len(r.ill) >= strangers
}

// away reports whether it has been tried often enough in vain.
func (r *replica) away(c *Config) bool { return r.fails >= c.Attempts }

// backoff returns the wait after n failures.
func (d *Dispatcher) backoff(n int) time.Duration {
	wait := d.config.RetryWait
	for range n - 1 {
		wait = min(2*wait, d.config.MaxRetryWait)
	}
	return wait/2 + time.Duration(rand.Float64()*float64(wait/2)) //nolint:gosec // spreads load, hides nothing
}

// choose returns the replica for a run: one that works and has least to do.
func (d *Dispatcher) choose(now time.Time) *replica {
	return slices.MinFunc(d.replicas, func(a, b *replica) int {
		return cmp.Compare(a.burden(now), b.burden(now))
	})
}

// burden orders replicas.
func (r *replica) burden(now time.Time) int64 {
	const muchMore = 1 << 40
	n := int64(r.left())
	switch {
	case now.Before(r.rest):
		n += muchMore * (1 + int64(min(r.fails, 1000)))
	case r.fails > 0 && len(r.runs) > 0: // one run finds out whether it works again
		n += muchMore
	}
	return n
}
