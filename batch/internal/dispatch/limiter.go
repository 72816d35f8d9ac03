package dispatch

import "time"

// How a limiter learns.
const (
	firstLimit  = 8    // where it begins
	leastWindow = 8    // answers before anything is concluded
	gainful     = 1.03 // more work per second by at least this factor: the larger limit was worth it
	slower      = 1.2  // answers that take longer by this factor wait in a queue
	shrink      = 0.75 // of the limit, where requests queue
	halve       = 0.5  // of the limit, where the engine has refused one
	hold        = 8    // windows without growth after it has shrunk
)

// limiter finds how many calls an engine can have in flight: it grows while that gets more work done per second, first by half, and after
// the first sign of a queue by one, and shrinks at once when the engine refuses calls. Not safe for concurrent use.
type limiter struct {
	limit float64
	most  int
	fixed bool

	careful bool // it has shrunk before: grow by one
	rest    int  // windows until it may grow again
	before  sample
	window  struct {
		since time.Time
		full  bool // the limit was reached all the time
		n     int
		work  float64
		took  time.Duration
	}
}

// sample is what a window showed.
type sample struct {
	limit, rate float64
	took        time.Duration
}

func newLimiter(fixed, most int) limiter {
	if fixed > 0 {
		return limiter{limit: float64(fixed), most: fixed, fixed: true}
	}
	return limiter{limit: float64(min(firstLimit, most)), most: most}
}

// places returns the number of calls that may be in flight.
func (l *limiter) places() int { return max(1, int(l.limit)) }

// idle notes that fewer calls are in flight than might be: the window says nothing about the limit.
func (l *limiter) idle() { l.window.full = false }

// answered notes an answer: the tokens that it cost the engine, and how long it took.
func (l *limiter) answered(now time.Time, work float64, took time.Duration) {
	if l.fixed {
		return
	}
	w := &l.window
	if !w.full {
		l.reset(now)
		return
	}
	w.n++
	w.work += work
	w.took += took
	if w.n < max(leastWindow, l.places()) {
		return
	}
	elapsed := now.Sub(w.since)
	if elapsed <= 0 {
		l.reset(now)
		return
	}
	got := sample{limit: l.limit, rate: w.work / elapsed.Seconds(), took: w.took / time.Duration(w.n)}
	l.learn(got)
	l.reset(now)
}

func (l *limiter) learn(got sample) {
	before := l.before
	l.before = got
	switch queued := float64(got.took) > slower*float64(before.took); {
	case before.rate == 0:
	case got.limit > before.limit && got.rate < gainful*before.rate:
		l.limit = before.limit // the larger limit has gained nothing
		l.careful, l.rest = true, hold
		l.before.limit = l.limit
		return
	case got.limit <= before.limit && queued && got.rate < before.rate:
		l.limit = max(1, got.limit*shrink) // other clients, perhaps
		l.careful, l.rest = true, hold
		return
	}
	if l.rest > 0 {
		l.rest--
		return
	}
	step := l.limit / 2
	if l.careful {
		step = max(1, l.limit/8)
	}
	l.limit = min(float64(l.most), l.limit+step)
}

func (l *limiter) reset(now time.Time) {
	w := &l.window
	w.since, w.full, w.n, w.work, w.took = now, true, 0, 0, 0
}

// refused notes that the engine had too much to do.
func (l *limiter) refused(now time.Time) {
	if l.fixed {
		return
	}
	l.limit = max(1, l.limit*halve)
	l.careful, l.rest, l.before = true, hold, sample{}
	l.reset(now)
}
