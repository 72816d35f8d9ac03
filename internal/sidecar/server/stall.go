package server

import (
	"errors"
	"os"
	"time"
)

const (
	// mostAtOnce is how many bytes of an answer have to be taken within Timeouts.Write.
	mostAtOnce = 64 << 10
	// buffered is how many bytes net/http's HTTP/2 keeps until they are flushed: so many are written without waiting.
	buffered = 4 << 10
)

// stall ends answers that their clients do not take. It is a deadline of writing that moves ahead with each write: what
// the handler does in between, such as waiting for an engine, takes as long as it takes.
type stall struct {
	patience    time.Duration
	stalled     func()    // is called for each that was ended
	deadline    time.Time // that is set; zero: none
	multiplexed bool      // HTTP/2, where a deadline also ends answers that are not being written
	pending     int       // bytes since the last flush, at most
	ended       bool
}

// writes is called before anything that may wait for the client. The deadline is moved only if a good part of its time
// has gone: that costs little, as it is done for every token.
func (a *answer) writes() {
	now := time.Now()
	if a.stall.deadline.Sub(now) >= a.stall.patience/4*3 {
		return
	}
	a.stall.deadline = now.Add(a.stall.patience)
	_ = a.control.SetWriteDeadline(a.stall.deadline) // a writer without a connection, in a test, has none
}

// written is called after it.
func (a *answer) written() {
	if a.stall.multiplexed {
		a.stall.deadline = time.Time{}
		_ = a.control.SetWriteDeadline(a.stall.deadline)
	}
}

// mayWait reports whether writing n bytes may wait for the client. In HTTP/2, where a deadline costs more, those that are
// written before a flush mostly do not.
func (a *answer) mayWait(n int) bool {
	a.stall.pending = min(a.stall.pending+n, buffered+1)
	return !a.stall.multiplexed || a.stall.pending > buffered
}

// finish is called when the handler has returned: net/http sends what is left in its buffers then. If the handler has taken
// the connection, it is closed by now.
func (a *answer) finish() {
	a.stall.deadline = time.Time{}
	a.writes()
}

// failed notes why a write did not succeed. In HTTP/2 it is not known.
func (a *answer) failed(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && !a.stall.ended {
		a.stall.ended = true
		a.stall.stalled()
	}
	return err
}
