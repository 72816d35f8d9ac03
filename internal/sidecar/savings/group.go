package savings

import (
	"iter"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/lru"
)

// MaxSessions is how many sessions of each group are open, at some 300 bytes each. When one more comes, the one that was
// longest without a request is closed: what it has added stays, as sums over all closed sessions. A session that goes on
// after it was closed counts as another one, and the interval is too narrow by what the two have in common.
const MaxSessions = 8192

// group is the samples of one side, by session. The zero group is ready.
type group struct {
	open   *lru.Cache[xxh3.Uint128, *session] // by the hash of the name; nil: none yet
	closed [quantities]sums
	single uint64 // samples without a session
}

// session is what one session has added so far.
type session struct{ of [quantities]tally }

// tally is the number of requests that told a quantity, and its sum.
type tally struct{ n, y float64 }

// sums are over sessions.
type sums struct {
	sessions   int
	n, y       float64
	nn, ny, yy float64 // squares and products
}

func (g *group) add(name string, values [quantities]float64) {
	s := g.session(name)
	for q, v := range values {
		if v == v { // a number
			s.of[q].n++
			s.of[q].y += v
		}
	}
}

// session returns the open session of a name, and opens it if need be.
func (g *group) session(name string) *session {
	if name == "" {
		g.single++
		name = "\x00" + strconv.FormatUint(g.single, 10)
	}
	key := xxh3.HashString128(name)
	if g.open == nil {
		g.open = lru.New[xxh3.Uint128, *session](MaxSessions)
	}
	if s, ok := g.open.Get(key); ok {
		return s
	}
	s := new(session)
	if _, old, full := g.open.Put(key, s); full {
		for q := range g.closed {
			g.closed[q].add(old.of[q])
		}
	}
	return s
}

// sessions iterates over the open sessions.
func (g *group) sessions() iter.Seq2[xxh3.Uint128, *session] {
	if g.open == nil {
		return func(func(xxh3.Uint128, *session) bool) {}
	}
	return g.open.All()
}

// add takes a session's tally in, if it told the quantity at all.
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
