package serve

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// refusals are the answers for bodies that were not read to their end.
var refusals = map[int]string{
	http.StatusRequestEntityTooLarge: "Request body too large",
	http.StatusRequestTimeout:        "Request body took too long",
}

// handle is a handler behind the first middleware. It may be called concurrently.
type handle func(a *answer, r *http.Request)

// limited bounds the body in bytes and in time. A length that is announced is refused at once. One that shows while it
// is read ends in a [http.MaxBytesError] for the reader, or in [os.ErrDeadlineExceeded]; the error that the handler
// then answers with, whichever it is, is sent as 413 or 408.
func (s *Server) limited(next handle) handle {
	return func(a *answer, r *http.Request) {
		limit := s.live.Load().Limits.BodyBytes
		if r.ContentLength > limit {
			sendDetail(a, http.StatusRequestEntityTooLarge, refusals[http.StatusRequestEntityTooLarge])
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			// MaxBytesReader wants net/http's own writer, to close the connection.
			r.Body = &body{ReadCloser: http.MaxBytesReader(a.ResponseWriter, r.Body, limit), answer: a}
			// It is for the body only: net/http takes it away when the body has ended, and replaces it when the
			// handler has returned. A writer without a connection, in a test, has none.
			_ = a.control.SetReadDeadline(time.Now().Add(s.timeouts.ReadBody))
		}
		next(a, r)
	}
}

// body is a request's body. Like every body it has one reader at a time, which need not be the handler's goroutine.
type body struct {
	io.ReadCloser
	answer *answer
}

// Read notes why a body ended early.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		b.answer.refusal.Store(http.StatusRequestEntityTooLarge)
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.answer.refusal.Store(http.StatusRequestTimeout)
	}
	return n, err
}
