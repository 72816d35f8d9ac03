package h1

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
)

// body is an answer's body. When it has been read to its end, its connection may serve another request.
type body struct {
	src  io.ReadCloser
	conn *conn
	t    *Transport
	ctx  context.Context //nolint:containedctx // the request's, which ends the body too
	stop func() bool
	keep bool
	done atomic.Bool
}

// Read implements io.Reader. After the request's context has ended, it returns the cause.
func (b *body) Read(p []byte) (int, error) {
	if b.done.Load() {
		return 0, io.EOF
	}
	n, err := b.src.Read(p)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		b.end(b.keep)
	default:
		b.end(false)
		if b.ctx.Err() != nil {
			err = context.Cause(b.ctx)
		}
	}
	return n, err
}

// Close implements io.Closer. A body that was not read to its end takes its connection with it.
func (b *body) Close() error {
	b.end(false)
	return nil
}

// end gives the connection back, or closes it.
func (b *body) end(keep bool) {
	if !b.done.CompareAndSwap(false, true) {
		return
	}
	if stopped := b.stop(); !stopped || !keep || b.conn.r.Buffered() > 0 {
		b.conn.kill() // also where the upstream sent more than the answer
		return
	}
	b.t.release(b.conn)
}
