package savings

import (
	"iter"
	"math"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// MaxSessions is how many sessions of each group are open, at some 300 bytes each. When one more comes, the one that was
// longest without a request is closed: what it has added stays, as sums over all closed sessions. A session that goes on
// after it was closed counts as another one, and the interval is too narrow by what the two have in common.
const MaxSessions = 8192

// group is the samples of one side, by session. The zero group is ready.
type group struct {
	open   *lru.Cache[xxh3.Uint128, *session] // by a hash of its name; nil: there are none
	closed [quantities]sums
	single uint64 // samples without a session
}

// session is what one session has added so far.
type session [quantities]tally

// tally is the number of requests that have a quantity, and its sum.
type tally struct{ n, y float64 }

// sums are over sessions.
type sums struct {
	sessions   int
	n, y       float64
	nn, ny, yy float64 // squares and products
}

// sessions returns the open ones.
func (g *group) sessions() iter.Seq2[xxh3.Uint128, *session] {
	if g.open == nil {
		return func(func(xxh3.Uint128, *session) bool) {}
	}
	return g.open.All()
}

func (g *group) add(name string, values [quantities]float64) {
	s := g.session(name)
	for q, v := range values {
		if v == v { // a number
			s[q].n++
			s[q].y += v
		}
	}
}

// session returns the open session of a name, and opens it if need be.
func (g *group) session(name string) *session {
	if name == "" {
		g.single++
		name = "\x00" + strconv.FormatUint(g.single, 10)
	}
	if g.open == nil {
		g.open = lru.New[xxh3.Uint128, *session](MaxSessions)
	}
	key := xxh3.HashString128(name)
	if s, ok := g.open.Get(key); ok {
		return s
	}
	s := new(session)
	if _, oldest, full := g.open.Put(key, s); full {
		for q := range g.closed {
			g.closed[q].add(oldest[q])
		}
	}
	return s
}

// add takes a session's tally in, if it has the quantity at all.
func (x *sums) add(t tally) {
	if t.n == 0 {
		return
	}
	x.sessions++
	x.n += t.n
	x.y += t.y
	x.nn += t.n * t.n
	x.ny += t.n * t.y
	x.yy += t.y * t.y
}

// estimate is the mean of a group per request, with the variance of that mean.
type estimate struct {
	value, variance, freedom float64
	requests, sessions       int
}

// mean estimates Σy/Σn over the sessions of a group, see the package comment.
func (g *group) mean(quantity int) estimate {
	closed := g.closed[quantity]
	all := closed
	for _, s := range g.sessions() {
		all.add(s[quantity])
	}
	out := estimate{requests: int(all.n), sessions: all.sessions, freedom: math.Inf(1)}
	if all.n == 0 {
		return out
	}
	out.value = all.y / all.n
	if all.sessions < 2 {
		return out
	}
	// Of closed sessions only sums are left. There are many then, each a small part of N, and taken for normal.
	squares := math.Max(closed.yy-2*out.value*closed.ny+out.value*out.value*closed.nn, 0) / (all.n * all.n)
	fourth := 3 * squares * squares / math.Max(float64(closed.sessions), 1)
	for _, s := range g.sessions() {
		t := s[quantity]
		if t.n == 0 {
			continue
		}
		d := (t.y - out.value*t.n) / (all.n - t.n)
		squares += d * d
		fourth += d * d * d * d
	}
	s := float64(all.sessions)
	out.variance = (s - 1) / s * squares
	if spread := fourth - squares*squares/s; spread > 0 {
		out.freedom = 2 * squares * squares / spread
	}
	return out
}
