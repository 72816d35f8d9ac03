// Package orderstest checks what every orders.Store must do.
//
//	func TestStore(t *testing.T) {
//		orderstest.Run(t, func() orders.Store { return orders.NewMemory(0, 0) })
//	}
package orderstest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// Run checks a Store; open is called for each part. The stores may share what is behind them: no key of a tenant is used
// twice, in no run.
func Run(t *testing.T, open func() orders.Store) {
	t.Helper()
	for _, part := range []struct {
		name  string
		check func(*testing.T, orders.Store)
	}{
		{"WhatWasPutIsFound", found},
		{"TheFirstWins", firstWins},
		{"TheFirstOfManyWins", firstOfManyWins},
		{"TenantsAreApart", tenantsApart},
		{"OnlyPermutations", onlyPermutations},
		{"AnotherLengthIsNotMixed", anotherLength},
		{"SlicesAreTheCallers", slicesAreTheCallers},
		{"Forget", forget},
		{"ACancelledContextHurtsNobody", cancelled},
	} {
		t.Run(part.name, func(t *testing.T) { part.check(t, open()) })
	}
}

// RunShared checks that what open returns are clients of one memory, and does what Run does.
func RunShared(t *testing.T, open func() orders.Store) {
	t.Helper()
	Run(t, open)
	t.Run("OneClientSeesWhatAnotherPut", func(t *testing.T) {
		tenant, order := newTenant(), []int{2, 0, 1}
		wantOrder(t, open().Put(t.Context(), tenant, key(1), order), order)
		other := open()
		got, ok := other.Get(t.Context(), tenant, key(1))
		wantFound(t, got, ok, order)
		wantOrder(t, open().Put(t.Context(), tenant, key(1), []int{0, 1, 2}), order)
	})
	t.Run("TheFirstOfManyClientsWins", func(t *testing.T) {
		clients := []orders.Store{open(), open()}
		tenant := newTenant()
		for round := range 50 {
			winner := race(t, clients, tenant, key(round))
			for _, c := range append(clients, open()) {
				got, ok := c.Get(t.Context(), tenant, key(round))
				wantFound(t, got, ok, winner)
			}
		}
	})
	t.Run("ForgetReachesWhoeverHasNotAskedYet", func(t *testing.T) {
		tenant, asked, fresh := newTenant(), open(), open()
		asked.Put(t.Context(), tenant, key(1), []int{1, 0})
		if err := asked.Forget(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		if got, ok := fresh.Get(t.Context(), tenant, key(1)); ok {
			t.Errorf("found %v", got)
		}
	})
}

func found(t *testing.T, s orders.Store) {
	tenant := newTenant()
	if got, ok := s.Get(t.Context(), tenant, key(0)); ok || got != nil {
		t.Errorf("found %v where nothing was put", got)
	}
	for n, size := range []int{1, 2, 20, 255, 256, 257, 3000} {
		order := rand.Perm(size)
		wantOrder(t, s.Put(t.Context(), tenant, key(n), order), order)
		got, ok := s.Get(t.Context(), tenant, key(n))
		wantFound(t, got, ok, order)
	}
}

func firstWins(t *testing.T, s orders.Store) {
	tenant, first := newTenant(), []int{1, 2, 0}
	wantOrder(t, s.Put(t.Context(), tenant, key(1), first), first)
	for range 3 {
		wantOrder(t, s.Put(t.Context(), tenant, key(1), []int{0, 1, 2}), first)
	}
	got, ok := s.Get(t.Context(), tenant, key(1))
	wantFound(t, got, ok, first)
}

func firstOfManyWins(t *testing.T, s orders.Store) {
	tenant := newTenant()
	for round := range 50 {
		winner := race(t, []orders.Store{s}, tenant, key(round))
		got, ok := s.Get(t.Context(), tenant, key(round))
		wantFound(t, got, ok, winner)
	}
}

// race lets many goroutines put an order of their own for a place at a time and returns the one that all
// got.
func race(t *testing.T, clients []orders.Store, tenant string, k orders.Key) []int {
	t.Helper()
	const each = 8
	winners := make([][]int, each*len(clients))
	own := make([][]int, len(winners))
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range winners {
		own[i] = rand.Perm(12)
		wg.Go(func() {
			<-start
			winners[i] = clients[i%len(clients)].Put(t.Context(), tenant, k, own[i])
		})
	}
	close(start)
	wg.Wait()
	for i, w := range winners {
		if !slices.Equal(w, winners[0]) {
			t.Fatalf("one got %v, another %v", winners[0], w)
		}
		if i == len(winners)-1 && !slices.ContainsFunc(own, func(o []int) bool { return slices.Equal(o, w) }) {
			t.Fatalf("nobody has put %v", w)
		}
	}
	return winners[0]
}

func tenantsApart(t *testing.T, s orders.Store) {
	a := newTenant()
	names := []string{a, a + "x", a + ":", a + "*", "*", "", a + "\x00", a + "\n"}
	for i, name := range names {
		order := rand.Perm(i + 2)
		k := key(rand.Int()) // the tenants "" and "*" may have been here before
		wantOrder(t, s.Put(t.Context(), name, k, order), order)
		for _, other := range names {
			if got, ok := s.Get(t.Context(), other, k); ok != (other == name) {
				t.Errorf("%q has put %v, %q finds %v %v", name, order, other, got, ok)
			}
		}
	}
}

func onlyPermutations(t *testing.T, s orders.Store) {
	tenant := newTenant()
	long := make([]int, orders.MaxDocuments+1)
	for i := range long {
		long[i] = i
	}
	wide := 32 // bits; a variable, since an int may have no more
	for i, order := range [][]int{nil, {}, {1}, {-1}, {0, 0}, {0, 2}, {1, 2}, {0, 1, 1 << (wide + 8)}, {0, 1 << wide}, {0, 1<<16 + 1}, long} {
		if got := s.Put(t.Context(), tenant, key(i), order); got != nil {
			t.Errorf("%v was taken, winner %v", order[:min(len(order), 5)], got)
		}
		if got, ok := s.Get(t.Context(), tenant, key(i)); ok {
			t.Errorf("%v was stored as %v", order[:min(len(order), 5)], got[:min(len(got), 5)])
		}
		valid := []int{2, 1, 0} // the place is not spoilt
		wantOrder(t, s.Put(t.Context(), tenant, key(i), valid), valid)
	}
}

func anotherLength(t *testing.T, s orders.Store) {
	tenant, first := newTenant(), []int{1, 2, 0}
	s.Put(t.Context(), tenant, key(1), first)
	wantOrder(t, s.Put(t.Context(), tenant, key(1), []int{1, 0}), []int{1, 0})
	got, ok := s.Get(t.Context(), tenant, key(1))
	wantFound(t, got, ok, first)
}

func slicesAreTheCallers(t *testing.T, s orders.Store) {
	tenant, mine := newTenant(), []int{1, 2, 0}
	winner := s.Put(t.Context(), tenant, key(1), mine)
	mine[0], winner[1] = 7, 7
	got, ok := s.Get(t.Context(), tenant, key(1))
	wantFound(t, got, ok, []int{1, 2, 0})
	got[0] = 7
	got, ok = s.Get(t.Context(), tenant, key(1))
	wantFound(t, got, ok, []int{1, 2, 0})
}

func forget(t *testing.T, s orders.Store) {
	a, b := newTenant(), newTenant()
	const places = 300
	for n := range places {
		s.Put(t.Context(), a, key(n), []int{1, 0})
		s.Put(t.Context(), b, key(n), []int{1, 0})
	}
	for range 2 { // nothing to forget is no error
		if err := s.Forget(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for n := range places {
		if got, ok := s.Get(t.Context(), a, key(n)); ok {
			t.Fatalf("place %d: %v", n, got)
		}
		if _, ok := s.Get(t.Context(), b, key(n)); !ok {
			t.Fatalf("place %d of another tenant is gone", n)
		}
	}
	wantOrder(t, s.Put(t.Context(), a, key(1), []int{0, 1}), []int{0, 1})
}

func cancelled(t *testing.T, s orders.Store) {
	tenant := newTenant()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	order := []int{1, 0}
	wantOrder(t, s.Put(ctx, tenant, key(1), order), order)
	got, ok := s.Get(t.Context(), tenant, key(1))
	wantFound(t, got, ok, order)
	wantOrder(t, s.Put(t.Context(), tenant, key(1), []int{0, 1}), order)
}

var tenants atomic.Int64

// newTenant returns a name that no run has used.
func newTenant() string {
	return fmt.Sprintf("tenant-%016x-%d", rand.Uint64(), tenants.Add(1))
}

func key(n int) orders.Key {
	var k orders.Key
	binary.LittleEndian.PutUint64(k[8:], uint64(n))
	return k
}

func wantOrder(t *testing.T, got, want []int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func wantFound(t *testing.T, got []int, ok bool, want []int) {
	t.Helper()
	if !ok {
		t.Fatalf("nothing found, want %v", want)
	}
	wantOrder(t, got, want)
}
