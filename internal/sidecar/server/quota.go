package server

import (
	"math"
	"net/http"
	"strconv"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// quota bounds what the holder of one key may ask. Safe for concurrent use.
type quota struct {
	rate    *rate.Limiter
	running atomic.Int64
}

func newQuota() *quota { return &quota{rate: rate.NewLimiter(rate.Inf, 1)} }

// set takes over limits. Requests that run are not ended.
func (q *quota) set(l settings.Limits) {
	if l.RequestsPerSecond == 0 {
		q.rate.SetLimit(rate.Inf)
		return
	}
	q.rate.SetLimit(rate.Limit(l.RequestsPerSecond))
	q.rate.SetBurst(burst(l.RequestsPerSecond))
}

// burst is how many requests may come at once: those of a second, and at least one.
func burst(perSecond float64) int { return int(math.Ceil(min(max(perSecond, 1), math.MaxInt32))) }

// within runs next if the quota has room, and answers 429 otherwise.
func (s *Server) within(q *quota, a *answer, next func()) {
	limits := s.live.Load().Limits
	running := q.running.Add(1)
	defer q.running.Add(-1)
	switch {
	case limits.ConcurrentRequests > 0 && running > int64(limits.ConcurrentRequests):
		s.tooMany(a, "1", "Too many requests of this key at the same time: the limit is "+strconv.Itoa(limits.ConcurrentRequests))
	case !q.rate.Allow():
		wait := strconv.Itoa(int(math.Ceil(1 / max(limits.RequestsPerSecond, 1e-6))))
		s.tooMany(a, wait, "Too many requests of this key: the limit is "+strconv.FormatFloat(limits.RequestsPerSecond, 'g', -1, 64)+" a second")
	default:
		next()
	}
}

func (s *Server) tooMany(a *answer, wait, text string) {
	s.metrics.OverQuota()
	a.Header().Set("Retry-After", wait)
	sendDetail(a, http.StatusTooManyRequests, text)
}
