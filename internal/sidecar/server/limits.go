package server

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// refusals are the answers for bodies that were not read to their end.
var refusals = map[int]string{
	http.StatusRequestEntityTooLarge: "Request body too large",
	http.StatusRequestTimeout:        "Request body took too long",
	http.StatusServiceUnavailable:    "Too many bytes of requests are being worked on, try again",
}

// handle is a handler behind the first middleware. It may be called concurrently.
type handle func(a *answer, r *http.Request)

// limited bounds the body in bytes and in time, and all bodies together. A length that is announced is refused at once. One
// that shows while it is read ends in a [http.MaxBytesError] for the reader, in [os.ErrDeadlineExceeded], or in
// [reqbody.ErrFull]; the error that the handler then answers with, whichever it is, is sent as 413, 408 or 503.
func (s *Server) limited(next handle) handle {
	return func(a *answer, r *http.Request) {
		limit := s.live.Load().Limits.BodyBytes
		if r.ContentLength > limit {
			sendDetail(a, http.StatusRequestEntityTooLarge, refusals[http.StatusRequestEntityTooLarge])
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			// MaxBytesReader wants net/http's own writer, to close the connection.
			b := &body{ReadCloser: http.MaxBytesReader(a.ResponseWriter, r.Body, limit), Share: s.bodies.Open(), limit: limit, server: s, answer: a}
			defer b.Release()
			r.Body = b
			// It is for the body only: net/http takes it away when the body has ended, and replaces it when the
			// handler has returned. A writer without a connection, in a test, has none.
			_ = a.control.SetReadDeadline(time.Now().Add(s.timeouts.ReadBody))
		}
		next(a, r)
	}
}

// body is a request's body. Like every body it has one reader at a time, which need not be the handler's goroutine. It is
// an [reqbody.Holder] and [reqbody.Bounded].
type body struct {
	io.ReadCloser
	*reqbody.Share
	limit  int64
	server *Server
	answer *answer
}

// Hold notes why a body was not read on.
func (b *body) Hold(ctx context.Context, n int) error {
	err := b.Share.Hold(ctx, n)
	if errors.Is(err, reqbody.ErrFull) {
		b.answer.refusal.Store(http.StatusServiceUnavailable)
		b.server.count.noRoom.Inc()
	}
	return err
}

// Read notes why a body ended early.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		b.answer.refusal.Store(http.StatusRequestEntityTooLarge)
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.answer.refusal.Store(http.StatusRequestTimeout)
	}
	return n, err
}

// Unpacked bounds a body that came packed as if it had not.
func (b *body) Unpacked(n int64) error {
	if n <= b.limit {
		return nil
	}
	b.answer.refusal.Store(http.StatusRequestEntityTooLarge)
	return &http.MaxBytesError{Limit: b.limit}
}

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
	s.count.overQuota.Inc()
	a.Header().Set("Retry-After", wait)
	sendDetail(a, http.StatusTooManyRequests, text)
}
