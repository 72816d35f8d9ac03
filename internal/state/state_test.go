package state_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/orders"
	"github.com/ragpilot/ragpilot/internal/state"
)

var scope = contextpilot.Scope{Model: "m", Tenant: "t", Replica: "r"}

func newPilot(t testing.TB) *contextpilot.Pilot {
	p, err := contextpilot.New(contextpilot.Config{Dedup: contextpilot.DedupOff, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func request(i int) contextpilot.Request {
	r := contextpilot.Request{ID: fmt.Sprint("r", i), Scope: scope}
	for k := range 8 {
		r.Blocks = append(r.Blocks, contextpilot.Block{ID: fmt.Sprint("b", (i*7+k*k)%40), Tokens: 50})
	}
	seen := map[string]bool{}
	r.Blocks = slices.DeleteFunc(r.Blocks, func(b contextpilot.Block) bool {
		again := seen[b.ID]
		seen[b.ID] = true
		return again
	})
	return r
}

func sent(p contextpilot.Plan) (ids []int) {
	for _, it := range p.Items {
		ids = append(ids, it.Index)
	}
	return ids
}

// After a restart the next prompts are ordered as if there had been none, and orders that were chosen stay.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	mem, pilot := orders.NewMemory(0, 0), newPilot(t)
	store := s.Orders(mem)
	for i := range 200 {
		r := request(i)
		pilot.Plan(r)
		s.Planned(r)
		if i%10 == 3 {
			pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Scope: scope, Request: r.ID})
			s.Gone(scope, r.ID)
		} else {
			pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: scope, Request: r.ID})
		}
		store.Put(t.Context(), "t", orders.Key{byte(i)}, []int{1, 0, 2})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = state.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	again, back := newPilot(t), orders.NewMemory(0, 0)
	got, err := s.Restore(back, again)
	if err != nil || got.Plans != 200 || got.Orders != 200 || got.Skipped != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if o, ok := back.Get(t.Context(), "t", orders.Key{77}); !ok || !slices.Equal(o, []int{1, 0, 2}) {
		t.Errorf("an order came back as %v", o)
	}
	for i := 200; i < 260; i++ {
		if a, b := sent(pilot.Plan(request(i))), sent(again.Plan(request(i))); !slices.Equal(a, b) {
			t.Fatalf("request %d: %v without a restart, %v after it", i, a, b)
		}
	}
}
