package kvevents

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"
)

type nowhere struct{}

func (nowhere) Apply(*Batch)  {}
func (nowhere) Clear(Cause)   {}
func (nowhere) Complete(bool) {}

// meeting is a subscriber with two sources, one of which engines connect to, and what their first messages do to it.
func meeting(t *testing.T, publishers int) (s *Subscriber, meet func(topic string) (*stream, uint64)) {
	t.Helper()
	s, err := New(Config{
		Sources:       []Source{{Name: "dialled", Endpoint: "tcp://127.0.0.1:1"}, {Name: "all", Endpoint: "tcp://127.0.0.1:2", Listen: true}},
		MaxPublishers: publishers, Probe: -1, Sink: func(Publisher) Sink { return nowhere{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		s.owners.Wait()
	})
	s.stream(ctx, Publisher{Source: "dialled"}, &s.cfg.Sources[0])
	return s, func(topic string) (*stream, uint64) {
		return s.meet(ctx, &s.cfg.Sources[1], [][]byte{[]byte(topic), make([]byte, 8), nil})
	}
}

// TestMetIsNotForgotten: a stream that a connection was given to does not make room for another, though not a message has
// gone through it yet. It does once the connection has ended.
func TestMetIsNotForgotten(t *testing.T) {
	s, meet := meeting(t, 1)
	for range 2 { // new, and known from before
		a, conn := meet("a")
		if a == nil {
			t.Fatal("the first publisher was not let in")
		}
		if b, _ := meet("b"); b != nil {
			t.Error("another took its place")
		}
		if s.streams[a.h.pub] != a {
			t.Error("it is forgotten")
		}
		a.detach(conn)
	}
	if b, _ := meet("b"); b == nil || len(s.streams) != 2 {
		t.Errorf("%d streams after the first has gone", len(s.streams))
	}
}

// TestDialledAreNotCounted: the bound is for publishers that connect to us.
func TestDialledAreNotCounted(t *testing.T) {
	s, meet := meeting(t, 3)
	for i := range 5 {
		if st, _ := meet(fmt.Sprint(i)); (st != nil) != (i < 3) {
			t.Errorf("publisher %d: let in %v", i, st != nil)
		}
	}
	if n := len(s.streams); n != 4 {
		t.Errorf("%d streams, want 4", n)
	}
}

// TestForgottenAfterAWhile: a publisher that has been gone for long is forgotten, and those that are there, or have gone just now, are not.
func TestForgottenAfterAWhile(t *testing.T) {
	s, meet := meeting(t, 10)
	_, first := meet("a")
	a, _ := meet("a") // once more: the end of its first connection is not its own
	b, conn := meet("b")
	a.detach(first)
	b.detach(conn)
	forget := func(after time.Duration) []*stream {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.forget(time.Now().Add(after))
	}
	if gone := forget(away / 2); len(gone) > 0 || len(s.streams) != 3 {
		t.Errorf("%d were forgotten at once, %d are left", len(gone), len(s.streams))
	}
	if gone := forget(2 * away); len(gone) != 1 || gone[0] != b || len(s.streams) != 2 || len(s.order) != 2 {
		t.Errorf("%d were forgotten later, %d are left", len(gone), len(s.streams))
	}
	<-b.ended
}

// last is a sink that notes why it was cleared last.
type last struct {
	nowhere
	cause Cause
}

func (l *last) Clear(c Cause) { l.cause = c }

// TestForgottenWithoutAnother: that no publisher comes after the last one does not keep what it held.
func TestForgottenWithoutAnother(t *testing.T) {
	sink := new(last)
	forgotten := make(chan Publisher, 1)
	s, err := New(Config{
		Sources: []Source{{Name: "all", Endpoint: "ipc://" + filepath.Join(t.TempDir(), "events"), Listen: true}},
		Sink:    func(Publisher) Sink { return sink }, Forgotten: func(p Publisher) { forgotten <- p },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.away = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	st, conn := s.meet(ctx, &s.cfg.Sources[0], [][]byte{[]byte("a"), make([]byte, 8), nil})
	st.detach(conn)
	select {
	case p := <-forgotten:
		if p.Topic != "a" || sink.cause != Disconnected || len(s.Status()) > 0 {
			t.Errorf("%+v was forgotten, cleared as %v; left %+v", p, sink.cause, s.Status())
		}
	case <-time.After(time.Minute):
		t.Error("it is not forgotten")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestClashIsOver: that two engines had one topic is no longer said when only one has been heard for a while.
func TestClashIsOver(t *testing.T) {
	now := time.Unix(1000, 0)
	h := newHistory(Publisher{Topic: "a"}, nowhere{}, nil, func() time.Time { return now })
	if hint := h.snapshot().Hint; hint != "" {
		t.Errorf("before: %q", hint)
	}
	h.clash()
	now = now.Add(away / 2)
	if h.snapshot().Hint == "" {
		t.Error("no hint")
	}
	now = now.Add(away)
	if s := h.snapshot(); s.Hint != "" || s.Clashes != 1 {
		t.Errorf("after: %q, %d clashes", s.Hint, s.Clashes)
	}
}

// buffered is a replayer that has batches 0 to n-1.
type buffered int

func (n buffered) ask(_ context.Context, from uint64, each func(uint64, []byte) bool) (bool, error) {
	for seq := from; seq < uint64(n); seq++ {
		if !each(seq, batch(seq)) {
			return false, nil
		}
	}
	return true, nil
}

// batch is a payload without events: its time, and an empty list.
func batch(seq uint64) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{0x92, 0xcb}, math.Float64bits(float64(seq))), 0x90)
}

// TestMessagesBehindTwoReplays: live messages that waited while two replays brought them and many more are no sign of another process.
func TestMessagesBehindTwoReplays(t *testing.T) {
	const n = 4 * recentBatches
	h := newHistory(Publisher{}, nowhere{}, buffered(n), time.Now)
	h.connected(t.Context())
	h.probe(t.Context())
	for seq := range uint64(n) {
		h.message(t.Context(), seq, batch(seq))
	}
	if s := h.snapshot(); s.Restarts > 0 || s.Overlaps != n || s.Batches != n {
		t.Errorf("%d restarts, %d overlaps, %d batches, want 0, %d, %d", s.Restarts, s.Overlaps, s.Batches, n, n)
	}
}

// restarting is a replayer whose process ends while it answers the first question; another process, with other batches, answers the
// next ones.
type restarting struct{ questions int }

func (r *restarting) ask(_ context.Context, from uint64, each func(uint64, []byte) bool) (bool, error) {
	r.questions++
	if r.questions == 1 {
		each(0, batch(100))
		return false, errors.New("broke off")
	}
	for seq := from; seq < 3; seq++ {
		if !each(seq, batch(seq)) {
			return false, nil
		}
	}
	return true, nil
}

// TestRestartInAReplay: what one process has begun to answer is not continued with what another one has.
func TestRestartInAReplay(t *testing.T) {
	h := newHistory(Publisher{}, nowhere{}, new(restarting), time.Now)
	h.connected(t.Context())
	if s := h.snapshot(); s.Restarts != 1 || s.Batches != 4 || s.LastSeq != 2 || !s.Complete {
		t.Errorf("%d restarts, %d batches up to %d, complete %v, want 1, 4, 2, true", s.Restarts, s.Batches, s.LastSeq, s.Complete)
	}
}

// unsteady is a replayer whose process ends in each answer.
type unsteady struct{ questions int }

func (u *unsteady) ask(_ context.Context, from uint64, each func(uint64, []byte) bool) (bool, error) {
	u.questions++
	if u.questions > 10*maxAsks {
		panic("no end of questions")
	}
	for seq := from; seq < from+2; seq++ {
		if !each(seq, batch(uint64(u.questions))) {
			return false, nil
		}
	}
	return false, errors.New("broke off")
}

// TestRestartsInAReplay: an engine that ends again and again is not asked for ever.
func TestRestartsInAReplay(t *testing.T) {
	u := new(unsteady)
	h := newHistory(Publisher{}, nowhere{}, u, time.Now)
	h.connected(t.Context())
	if s := h.snapshot(); s.Restarts < 2 || u.questions > maxAsks || s.Complete {
		t.Errorf("%d restarts, %d questions, complete %v", s.Restarts, u.questions, s.Complete)
	}
}
