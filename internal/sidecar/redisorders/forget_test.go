package redisorders_test

import (
	"context"
	"errors"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/ragpilot/ragpilot/internal/sidecar/redisorders"
)

// forgetting starts a Forget of the tenant "".
func forgetting(t testing.TB, s *redisorders.Store) <-chan error {
	done := make(chan error, 1)
	go func() { done <- s.Forget(t.Context(), "") }()
	return done
}

// A Put that has returned, but is still under way, does not bring back a tenant that is forgotten then.
func TestFakeForgetWaitsForPuts(t *testing.T) {
	fake := miniredis.RunT(t)
	g := newGate(t, fake.Addr(), requests, nothing)
	s := open(t, impatient(g.addr))
	s.Put(t.Context(), "", key(1), []int{1, 0})
	done := forgetting(t, s)
	until(t, "Forget waits", func() bool {
		s.Get(t.Context(), "another", key(1)) // is skipped then
		select {
		case err := <-done:
			t.Fatalf("Forget has not waited: %v", err)
		default:
		}
		return s.Stats().Skipped > 0
	})
	g.open()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(places(fake)) != 0 {
		t.Errorf("keys: %q", fake.Keys())
	}
}

// What is read while a tenant is being forgotten is forgotten with it.
func TestFakeForgetAndGetAtATime(t *testing.T) {
	fake := miniredis.RunT(t)
	open(t, patient("redis://"+fake.Addr())).Put(t.Context(), "", key(1), []int{1, 0})
	g := newGate(t, fake.Addr(), requests, nothing)
	s := open(t, patient("redis://"+g.addr))
	done := forgetting(t, s)
	until(t, "Forget has a connection", func() bool { return g.accepted() == 1 })
	if _, ok := s.Get(t.Context(), "", key(1)); !ok {
		t.Fatal("gone before it was removed")
	}
	g.open()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, ok := s.Get(t.Context(), "", key(1)); ok {
		t.Errorf("got %v", got)
	}
}

func TestFakeForgetEndsWithItsContext(t *testing.T) {
	fake := miniredis.RunT(t)
	s := open(t, patient("redis://"+fake.Addr()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Forget(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Forget with a cancelled context: %v", err)
	}
}
