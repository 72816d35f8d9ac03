package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
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
		b.server.metrics.NoRoom()
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
