package kvevents

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// item is a message on its way to the history.
type item struct {
	conn    uint64 // number of the connection that it came by
	seq     uint64
	payload []byte
}

// stream is one publisher: a bounded queue between the connection, which must never wait, and the goroutine that
// brings messages into order and gives them to the sink, which may.
type stream struct {
	h     *history
	queue chan item
	bytes atomic.Int64 // in queue
	limit int64
	kick  chan struct{} // something below has changed
	probe time.Duration
	end   context.CancelFunc // of run
	ended chan struct{}      // closed when run has

	conn      atomic.Uint64 // number of the latest connection; set with mu held
	up        atomic.Bool   // it stands; set with mu held
	forgotten atomic.Bool   // the sink's picture ends with run
	overflown atomic.Bool
	resync    atomic.Bool

	mu    sync.Mutex // guards what follows; may be taken with the subscriber's
	topic string     // of the latest connection's messages
	named bool
	gone  time.Time // since when no connection stands
}

func newStream(h *history, cfg *Config) *stream {
	return &stream{
		h: h, queue: make(chan item, cfg.Queue), limit: int64(cfg.QueueBytes), kick: make(chan struct{}, 1),
		probe: cfg.Probe, ended: make(chan struct{}),
	}
}

// guest reports whether the publisher connected to us.
func (s *stream) guest() bool { return s.h.pub.Topic != "" }

// attach announces a connection and returns its number.
func (s *stream) attach() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named = false
	n := s.conn.Add(1)
	s.up.Store(true)
	s.wake()
	return n
}

// detach announces that a connection is gone.
func (s *stream) detach(conn uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn.Load() == conn {
		s.up.Store(false)
		s.gone = time.Now()
		s.wake()
	}
}

// connection returns the number of the latest connection, and whether it stands.
func (s *stream) connection() (conn uint64, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.Load(), s.up.Load()
}

// vacant reports whether a connection is not the latest, which no longer stands: it may take its place.
func (s *stream) vacant(conn uint64) bool {
	if s.conn.Load() == conn {
		return false
	}
	latest, up := s.connection()
	return latest != conn && !up
}

// left returns since when a publisher that had connected to us is gone, if it is.
func (s *stream) left() (since time.Time, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone, s.guest() && !s.up.Load()
}

func (s *stream) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// accept reports whether messages under this topic belong to the publisher: those under the first topic of a
// connection do.
func (s *stream) accept(topic []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.named {
		s.named, s.topic = true, string(topic)
	}
	return s.topic == string(topic)
}

// push never blocks: what does not fit is dropped, and missed as soon as the next message is read.
func (s *stream) push(it item) {
	if s.conn.Load() != it.conn {
		s.h.clash()
		return
	}
	if s.bytes.Add(int64(len(it.payload))) > s.limit {
		s.drop(it)
		return
	}
	select {
	case s.queue <- it:
	default:
		s.drop(it)
	}
}

func (s *stream) drop(it item) {
	s.bytes.Add(-int64(len(it.payload)))
	s.h.overflow(it.seq)
	s.overflown.Store(true) // after it, so that run does not forget a drop
	s.wake()
}

// settling is how long after a connection was made it is asked once more whether anything was missed.
const settling = time.Second

// run brings messages into order until ctx ends.
func (s *stream) run(ctx context.Context) {
	defer close(s.ended)
	defer s.end()
	var known uint64 // connections that the history knows
	var silent <-chan time.Time
	if s.probe > 0 {
		t := time.NewTicker(s.probe)
		defer t.Stop()
		silent = t.C
	}
	quiet := true // since the last tick
	// A publisher may answer a replay before it has read the subscription: what it sends in between is missed, and asked for soon after.
	var settled <-chan time.Time
	for ctx.Err() == nil {
		before := known
		select {
		case <-ctx.Done():
		case it := <-s.queue:
			quiet = false
			known = s.message(ctx, it, known)
		case <-s.kick:
			known = s.changed(ctx, known)
		case <-silent:
			if quiet && s.up.Load() {
				s.h.probe(ctx)
			}
			quiet = true
		case <-settled:
			settled = nil
			if s.up.Load() {
				s.h.probe(ctx)
			}
		}
		if known != before && s.probe > 0 {
			settled = time.After(min(s.probe, settling))
		}
		if len(s.queue) == 0 && s.overflown.Swap(false) {
			s.h.dropped(ctx)
		}
	}
	s.h.disconnected()
	if s.forgotten.Load() {
		s.h.clear(Disconnected)
	}
}

func (s *stream) message(ctx context.Context, it item, known uint64) uint64 {
	if it.conn > known {
		s.h.connected(ctx)
		known = it.conn
	}
	s.bytes.Add(-int64(len(it.payload)))
	s.h.message(ctx, it.seq, it.payload)
	if len(s.queue) == 0 {
		s.h.check(ctx)
	}
	return known
}

// changed looks at what others have set. Messages that were there before come first.
func (s *stream) changed(ctx context.Context, known uint64) uint64 {
	conn, up := s.connection()
	for n := len(s.queue); n > 0; n-- {
		known = s.message(ctx, <-s.queue, known)
	}
	if conn > known {
		s.h.connected(ctx)
		known = conn
	}
	if !up && conn == s.conn.Load() {
		s.h.disconnected()
	}
	if s.resync.Swap(false) {
		s.h.resync(ctx)
	}
	return known
}
