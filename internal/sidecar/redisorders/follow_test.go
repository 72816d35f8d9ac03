package redisorders_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/ragpilot/ragpilot/internal/sidecar/redisorders"
)

// impatientFollower follows, and is soon sure that Redis does not answer.
func impatientFollower(t testing.TB, addr string) *redisorders.Store {
	t.Helper()
	s := open(t, redisorders.Options{URL: "redis://" + addr, Budget: 50 * time.Millisecond, Pause: 20 * time.Millisecond})
	s.Follow()
	return s
}

// frozen calls f while Redis takes commands, but carries none out.
func frozen(fake *miniredis.Miniredis, f func()) {
	fake.Lock()
	defer fake.Unlock()
	f()
}

func TestFakeOrdersAreReadAhead(t *testing.T) {
	fake := miniredis.RunT(t)
	open(t, patient("redis://"+fake.Addr())).Put(t.Context(), "a", key(1), []int{2, 0, 1}) // before the other one starts
	s := impatientFollower(t, fake.Addr())
	open(t, patient("redis://"+fake.Addr())).Put(t.Context(), "a", key(2), []int{1, 0})
	until(t, "both are read ahead", func() bool { return s.Stats().Latest == 2 })
	frozen(fake, func() {
		got, _ := s.Get(t.Context(), "a", key(1))
		wantOrder(t, got, []int{2, 0, 1})
		wantOrder(t, s.Put(t.Context(), "a", key(2), []int{0, 1}), []int{1, 0})
		if got, ok := s.Get(t.Context(), "b", key(1)); ok {
			t.Errorf("another tenant's order: %v", got)
		}
	})
	if st := s.Stats(); st.Ahead != 2 || st.Alone != 0 {
		t.Errorf("stats: %+v", st)
	}
}

// What was chosen without Redis is in Redis afterwards, also where Redis carries out late what it was asked before.
func TestFakeWhatWasChosenAloneIsWrittenLater(t *testing.T) {
	fake := miniredis.RunT(t)
	s := impatientFollower(t, fake.Addr())
	other := impatientFollower(t, fake.Addr())
	s.Get(t.Context(), "a", key(0)) // it answers
	frozen(fake, func() {
		for n := 1; n <= 250; n++ { // of the first, Redis takes another order
			wantOrder(t, s.Put(t.Context(), "a", key(n), []int{2, 1, 0}), []int{0, 1, 2})
		}
	})
	fresh := func(n int) []int {
		got, _ := open(t, patient("redis://"+fake.Addr())).Get(t.Context(), "a", key(n))
		return got
	}
	for _, n := range []int{1, 2, 250} {
		until(t, "the order is in Redis", func() bool { got := fresh(n); return len(got) == 3 && got[0] == 0 })
	}
	// The first's order comes into the stream twice, and what is in place of it may come last of all. Behind that there is one more.
	open(t, patient("redis://"+fake.Addr())).Put(t.Context(), "a", key(251), []int{1, 0})
	until(t, "all are read ahead", func() bool { return other.Stats().Latest == 251 })
	frozen(fake, func() {
		for _, n := range []int{1, 2, 250} {
			got, ok := other.Get(t.Context(), "a", key(n))
			if !ok {
				t.Fatalf("%d is not known", n)
			}
			wantOrder(t, got, []int{0, 1, 2})
		}
	})
}

// An order that another replica put while this one was cut off stays.
func TestFakeAnOrderOfAnotherReplicaStays(t *testing.T) {
	fake := miniredis.RunT(t)
	open(t, patient("redis://"+fake.Addr())).Put(t.Context(), "a", key(1), []int{2, 1, 0})
	s := open(t, redisorders.Options{URL: "redis://" + fake.Addr(), Budget: 20 * time.Millisecond, Pause: 20 * time.Millisecond})
	frozen(fake, func() {
		wantOrder(t, s.Put(t.Context(), "a", key(1), []int{1, 0, 2}), []int{0, 1, 2})
		wantOrder(t, s.Put(t.Context(), "a", key(2), []int{1, 0, 2}), []int{0, 1, 2})
	})
	s.Follow()
	other := func(n int) []int {
		got, _ := open(t, patient("redis://"+fake.Addr())).Get(t.Context(), "a", key(n))
		return got
	}
	until(t, "the other place is written", func() bool { return len(other(2)) == 3 })
	wantOrder(t, other(1), []int{2, 1, 0})
}

// When Redis answers again, other replicas may not have written yet what they chose alone: new orders stay those that all
// choose alike.
func TestFakeStaysAloneForAMoment(t *testing.T) {
	fake := miniredis.RunT(t)
	s := open(t, redisorders.Options{URL: "redis://" + fake.Addr(), Budget: 20 * time.Millisecond, Failures: 1, Pause: time.Second})
	frozen(fake, func() { s.Get(t.Context(), "a", key(0)) })
	n := 0
	until(t, "the breaker closes", func() bool {
		n++
		s.Get(t.Context(), "a", key(n))
		return !s.Stats().Open
	})
	wantOrder(t, s.Put(t.Context(), "a", key(1), []int{1, 0}), []int{0, 1})
}

// Forget reaches what other replicas have read ahead, the stream, and what was not written yet.
func TestFakeForgetReachesWhatWasReadAhead(t *testing.T) {
	fake := miniredis.RunT(t)
	s, other := impatientFollower(t, fake.Addr()), impatientFollower(t, fake.Addr())
	writer := open(t, patient("redis://"+fake.Addr()))
	for n := range 1500 { // more than are looked through at a time
		writer.Put(t.Context(), "a", key(n), []int{1, 0})
	}
	writer.Put(t.Context(), "b", key(1), []int{1, 0})
	frozen(fake, func() { s.Put(t.Context(), "a", key(2000), []int{1, 0}) })
	until(t, "all are read ahead", func() bool { return other.Stats().Latest >= 1501 })
	if err := s.Forget(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	until(t, "the other replica has forgotten", func() bool { return other.Stats().Latest == 1 && s.Stats().Latest == 1 })
	if left := entries(t, fake); len(left) != 2 {
		t.Errorf("%d entries are in the stream, want one of the other tenant and that this one was forgotten", len(left))
	}
	if len(places(fake)) != 1 {
		t.Errorf("keys: %q", places(fake))
	}
	frozen(fake, func() {
		if got, ok := other.Get(t.Context(), "a", key(1)); ok {
			t.Errorf("found %v", got)
		}
		if _, ok := other.Get(t.Context(), "b", key(1)); !ok {
			t.Error("the order of another tenant is gone")
		}
	})
}
