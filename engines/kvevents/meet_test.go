package kvevents

import (
	"context"
	"fmt"
	"testing"
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
