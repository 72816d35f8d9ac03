package redisorders_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/prompt/orders/orderstest"
	"github.com/ragpilot/ragpilot/internal/sidecar/redisorders"
)

// What is named fake runs on miniredis, a server made for tests; real_test.go has the real ones.

// places returns the keys of places in Redis.
func places(fake *miniredis.Miniredis) []string {
	return slices.DeleteFunc(fake.Keys(), func(name string) bool { return strings.HasSuffix(name, ":latest") })
}

// entries returns the stream of the latest orders.
func entries(t testing.TB, fake *miniredis.Miniredis) []miniredis.StreamEntry {
	t.Helper()
	for _, name := range fake.Keys() {
		if strings.HasSuffix(name, ":latest") {
			entries, err := fake.Stream(name)
			if err != nil {
				t.Fatal(err)
			}
			return entries
		}
	}
	return nil
}

func TestFakeSuite(t *testing.T) {
	fake := miniredis.RunT(t)
	orderstest.RunShared(t, func() orders.Store { return open(t, patient("redis://"+fake.Addr())) })
}

func TestFakeKeysHoldNoTenantAndLiveOn(t *testing.T) {
	fake := miniredis.RunT(t)
	o := patient("redis://" + fake.Addr())
	o.Prefix, o.TTL = "odd*[prefix]?\\^-:", time.Hour
	s := open(t, o)
	s.Put(t.Context(), "the secret tenant", key(1), []int{1, 0})
	s.Put(t.Context(), "the secret tenant", key(2), []int{1, 0})
	if text := fmt.Sprint(entries(t, fake)); strings.Contains(text, "secret") {
		t.Errorf("the stream names the tenant: %s", text)
	}
	for _, name := range fake.Keys() {
		if !strings.HasPrefix(name, o.Prefix) || strings.Contains(name, "secret") {
			t.Errorf("key %q", name)
		}
		if ttl := fake.TTL(name); ttl != time.Hour {
			t.Errorf("%q lives for %s", name, ttl)
		}
	}
	if len(places(fake)) != 2 {
		t.Fatalf("keys: %q", fake.Keys())
	}
	fake.FastForward(50 * time.Minute)
	if _, ok := open(t, o).Get(t.Context(), "the secret tenant", key(1)); !ok {
		t.Fatal("gone after 50 minutes")
	}
	fake.FastForward(50 * time.Minute)
	fresh := open(t, o)
	if _, ok := fresh.Get(t.Context(), "the secret tenant", key(1)); !ok {
		t.Error("what was asked for 50 minutes ago is gone")
	}
	if _, ok := fresh.Get(t.Context(), "the secret tenant", key(2)); ok {
		t.Error("what nobody has asked for in 100 minutes is still there")
	}
	if err := s.Forget(t.Context(), "the secret tenant"); err != nil || len(places(fake)) != 0 {
		t.Errorf("after Forget: %q, %v", fake.Keys(), err)
	}
	if left := entries(t, fake); len(left) != 1 || !slices.Contains(left[0].Values, "f") {
		t.Errorf("in the stream after Forget: %q", left)
	}
}

func TestFakeAsksForAPlaceOnce(t *testing.T) {
	fake := miniredis.RunT(t)
	s := open(t, patient("redis://"+fake.Addr()))
	s.Put(t.Context(), "", key(1), []int{1, 0})
	before := fake.CommandCount()
	for range 10 {
		if _, ok := s.Get(t.Context(), "", key(1)); !ok {
			t.Fatal("not found")
		}
		wantOrder(t, s.Put(t.Context(), "", key(1), []int{0, 1}), []int{1, 0})
	}
	if n := fake.CommandCount() - before; n != 0 {
		t.Errorf("%d commands for what the memory knows", n)
	}
	var took atomic.Int64
	o := patient("redis://" + fake.Addr())
	o.Took = func(d time.Duration) { took.Add(int64(d)) }
	fresh := open(t, o)
	fresh.Get(t.Context(), "", key(1))
	fresh.Get(t.Context(), "", key(1))
	fresh.Get(t.Context(), "", key(2))
	got := fresh.Stats()
	if got.Hits != 1 || got.Local != 1 || got.Misses != 1 || got.Failures+got.Skipped+got.Invalid != 0 || got.Open {
		t.Errorf("stats: %+v", got)
	}
	if got.Answers != 2 || took.Load() <= 0 {
		t.Errorf("%d answers took %d ns", got.Answers, took.Load())
	}
}

// Others may write what they like: an order is used if it is one of this place, else the place has none.
func TestFakeForeignValuesAreNotUsed(t *testing.T) {
	fake := miniredis.RunT(t)
	o := patient("redis://" + fake.Addr())
	s := open(t, o)
	s.Put(t.Context(), "", key(1), []int{2, 0, 1})
	name := places(fake)[0]
	good, err := fake.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, value := range map[string]string{
		"nothing":              "",
		"text":                 "[2,0,1]",
		"another place's":      string(orders.Encode(key(2), []int{2, 0, 1})),
		"a later format":       "\x02" + good[1:],
		"cut":                  good[:len(good)-1],
		"not a permutation":    string(orders.Encode(key(1), []int{2, 0, 0})),
		"out of range":         string(orders.Encode(key(1), []int{1, 2, 3})),
		"a flipped bit in one": good[:4] + string(good[4]^1) + good[5:],
	} {
		t.Run(what, func(t *testing.T) {
			if err := fake.Set(name, value); err != nil {
				t.Fatal(err)
			}
			s := open(t, o)
			if got, ok := s.Get(t.Context(), "", key(1)); ok {
				t.Errorf("got %v", got)
			}
			wantOrder(t, s.Put(t.Context(), "", key(1), []int{1, 0, 2}), []int{1, 0, 2})
			got, ok := s.Get(t.Context(), "", key(1))
			if !ok {
				t.Fatal("the process does not know its own order")
			}
			wantOrder(t, got, []int{1, 0, 2})
			if st := s.Stats(); st.Invalid != 2 || st.Failures != 0 || st.Open {
				t.Errorf("stats: %+v", st)
			}
		})
	}
	t.Run("a list", func(t *testing.T) { // an error of Redis
		fake.Del(name)
		if _, err := fake.Push(name, "x"); err != nil {
			t.Fatal(err)
		}
		s := open(t, o)
		wantOrder(t, s.Put(t.Context(), "", key(1), []int{1, 0, 2}), []int{0, 1, 2})
		if st := s.Stats(); st.Failures != 1 {
			t.Errorf("stats: %+v", st)
		}
	})
}

func TestFakeGoneAndBack(t *testing.T) {
	fake := miniredis.RunT(t)
	var log strings.Builder
	o := redisorders.Options{
		URL: "redis://:s3cret-word@" + fake.Addr(), Failures: 3, Pause: 10 * time.Millisecond, Budget: time.Second,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	fake.RequireAuth("s3cret-word")
	s := open(t, o)
	s.Put(t.Context(), "", key(0), []int{1, 0})
	fake.Close()
	for n := 1; n <= 200; n++ {
		order := []int{0, 1, 2, 3, 4} // as they came, whatever was asked for
		wantOrder(t, s.Put(t.Context(), "", key(n), rand.Perm(5)), order)
		got, ok := s.Get(t.Context(), "", key(n))
		if !ok {
			t.Fatal("not found")
		}
		wantOrder(t, got, order)
	}
	st := s.Stats()
	if !st.Open || st.Failures < 3 || st.Skipped == 0 || st.Failures+st.Skipped != 200 {
		t.Fatalf("stats: %+v", st)
	}
	if err := s.Forget(t.Context(), ""); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("Forget without Redis: %v", err)
	}
	if _, ok := s.Get(t.Context(), "", key(5)); ok {
		t.Error("the memory still knows what was to be forgotten")
	}
	if err := fake.Restart(); err != nil {
		t.Fatal(err)
	}
	n := 1000
	until(t, "the breaker closes", func() bool {
		n++
		s.Put(t.Context(), "", key(n), []int{1, 0})
		return !s.Stats().Open
	})
	s.Put(t.Context(), "", key(n+1), []int{1, 0})
	if _, ok := open(t, o).Get(t.Context(), "", key(n+1)); !ok {
		t.Error("not stored in Redis after it came back")
	}
	if text := log.String(); strings.Count(text, "does not answer") != 1 || strings.Count(text, "answers again") != 1 ||
		strings.Contains(text, "s3cret") {
		t.Errorf("log: %s", text)
	}
}

// A server that takes everything and answers nothing costs the budget, a few times.
func TestSilentServerCostsTheBudgetAFewTimes(t *testing.T) {
	fake := miniredis.RunT(t)
	g := newGate(t, fake.Addr(), answers)
	o := redisorders.Options{URL: "redis://" + g.addr, Failures: 4, Pause: time.Hour, Budget: 10 * time.Millisecond}
	until(t, "a Put waits for the budget alone", func() bool { // how long another one takes that the machine holds up says nothing
		s := open(t, o)
		quickest := time.Hour
		for n := range 1000 {
			began := time.Now()
			wantOrder(t, s.Put(t.Context(), "", key(n), []int{1, 0}), []int{0, 1})
			if n < o.Failures {
				quickest = min(quickest, time.Since(began))
			}
		}
		if st := s.Stats(); st.Failures != 4 || st.Skipped != 996 || !st.Open || st.Answers != 0 {
			t.Errorf("stats: %+v", st)
		}
		if quickest < o.Budget {
			t.Errorf("waited for %s, budget %s", quickest, o.Budget)
		}
		return quickest < o.Budget+slack
	})
}

// An answer that comes too late for one request serves the next.
func TestFakeLateAnswersAreRemembered(t *testing.T) {
	fake := miniredis.RunT(t)
	open(t, patient("redis://"+fake.Addr())).Put(t.Context(), "", key(1), []int{1, 0})
	g := newGate(t, fake.Addr(), answers)
	s := open(t, redisorders.Options{URL: "redis://" + g.addr, Budget: 10 * time.Millisecond})
	if got, ok := s.Get(t.Context(), "", key(1)); ok {
		t.Fatalf("got %v through a closed gate", got)
	}
	g.open()
	until(t, "the late answer is there", func() bool { return s.Stats().Answers == 1 })
	before := s.Stats()
	got, ok := s.Get(t.Context(), "", key(1))
	if !ok {
		t.Fatal("the late answer is lost")
	}
	wantOrder(t, got, []int{1, 0})
	if st := s.Stats(); st.Local != before.Local+1 || st.Failures != 1 {
		t.Errorf("stats: %+v", st)
	}
}

// What this process has forwarded it forwards again, whatever Redis says later.
func TestFakeAProcessAgreesWithItself(t *testing.T) {
	for _, other := range []bool{false, true} {
		t.Run(fmt.Sprintf("another was first=%v", other), func(t *testing.T) {
			fake := miniredis.RunT(t)
			mine, forwarded := []int{2, 1, 0}, []int{0, 1, 2} // as Redis did not answer
			inRedis := forwarded                              // in place of what it stored late
			if other {
				inRedis = []int{1, 0, 2}
				open(t, patient("redis://"+fake.Addr())).Put(t.Context(), "", key(1), inRedis)
			}
			g := newGate(t, fake.Addr(), answers)
			s := open(t, redisorders.Options{URL: "redis://" + g.addr, Budget: 10 * time.Millisecond})
			given := slices.Clone(mine)
			wantOrder(t, s.Put(t.Context(), "", key(1), given), forwarded)
			clear(given) // it is the caller's again, though Redis is still asked
			g.open()
			until(t, "the late answer is there", func() bool { return s.Stats().Answers >= 1 })
			got, _ := s.Get(t.Context(), "", key(1))
			wantOrder(t, got, forwarded)
			wantOrder(t, s.Put(t.Context(), "", key(1), []int{1, 2, 0}), forwarded)
			until(t, "Redis has the order that is used", func() bool {
				got, _ = open(t, patient("redis://"+fake.Addr())).Get(t.Context(), "", key(1))
				return slices.Equal(got, inRedis)
			})
		})
	}
}

// impatient is a client whose requests do not wait, as the test holds back what they need.
func impatient(addr string) redisorders.Options {
	return redisorders.Options{URL: "redis://" + addr, Budget: time.Millisecond, Failures: 1 << 30}
}

func TestOperationsUnderWayAreBounded(t *testing.T) {
	fake := miniredis.RunT(t)
	g := newGate(t, fake.Addr(), answers)
	s := open(t, redisorders.Options{URL: "redis://" + g.addr, Budget: time.Nanosecond, Failures: 1 << 30})
	for n := range 500 {
		s.Get(t.Context(), "", key(n))
	}
	// Those under way give up after a second, so more than 64 may have been tried on a slow machine.
	if st := s.Stats(); st.Skipped == 0 || st.Skipped+st.Failures != 500 {
		t.Errorf("stats: %+v", st)
	}
}

func TestAfterCloseTheMemoryAnswers(t *testing.T) {
	fake := miniredis.RunT(t)
	s := open(t, patient("redis://"+fake.Addr()))
	s.Put(t.Context(), "", key(1), []int{1, 0})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := s.Get(t.Context(), "", key(1)); !ok {
		t.Error("the memory is gone")
	}
	wantOrder(t, s.Put(t.Context(), "", key(2), []int{1, 0}), []int{0, 1})
	if err := s.Forget(t.Context(), ""); err == nil {
		t.Error("Forget after Close succeeded")
	}
}

func TestPingTellsThatThePasswordIsWrong(t *testing.T) {
	fake := miniredis.RunT(t)
	fake.RequireAuth("right")
	err := open(t, patient("redis://:wr0ng-word@"+fake.Addr())).Ping(t.Context())
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("with the wrong password: %v", err)
	}
	if err := open(t, patient("redis://:right@"+fake.Addr())).Ping(t.Context()); err != nil {
		t.Errorf("with the right one: %v", err)
	}
}

func BenchmarkFake(b *testing.B) {
	fake := miniredis.RunT(b)
	benchmark(b, "redis://"+fake.Addr())
}

// benchmark measures places that the memory does not know, and one that it knows.
func benchmark(b *testing.B, url string) {
	ctx, order := context.Background(), rand.Perm(20)
	tenant := fmt.Sprintf("bench-%x", rand.Uint64())
	n := 0
	b.Run("put new", func(b *testing.B) {
		s := open(b, patient(url))
		b.ReportAllocs()
		for b.Loop() {
			n++
			s.Put(ctx, tenant, key(n), order)
		}
	})
	b.Run("get from Redis", func(b *testing.B) {
		s := open(b, patient(url))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%n == 0 && i > 0 { // all are known now
				b.StopTimer()
				_ = s.Close()
				s = open(b, patient(url))
				b.StartTimer()
			}
			if _, ok := s.Get(ctx, tenant, key(1+i%n)); !ok {
				b.Fatal("not found")
			}
		}
	})
	b.Run("get known", func(b *testing.B) {
		s := open(b, patient(url))
		s.Get(ctx, tenant, key(1))
		b.ReportAllocs()
		for b.Loop() {
			s.Get(ctx, tenant, key(1))
		}
	})
	b.Run("put new/parallel", func(b *testing.B) {
		s := open(b, patient(url))
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := rand.Int(); pb.Next(); i++ {
				s.Put(ctx, tenant, key(i), order)
			}
		})
	})
}
