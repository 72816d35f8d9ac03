package savings

import "math"

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
		all.add(s.of[quantity])
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
		t := s.of[quantity]
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
