package state_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/sidecar/state"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

var scope = contextpilot.Scope{Model: "m", Tenant: "t", Replica: "r"}

func open(t *testing.T, dir string) *state.State {
	t.Helper()
	return testkit.Must(state.Open(dir, slog.New(slog.DiscardHandler)))(t)
}

// again closes a state and opens it once more.
func again(t *testing.T, s *state.State, dir string) *state.State {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

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
	s := open(t, dir)
	mem, pilot := orders.NewMemory(0, 0), newPilot(t)
	store := s.Orders(mem)
	for i := range 200 {
		r := request(i)
		s.Planned(r, sent(pilot.Plan(r)))
		if i%10 == 3 {
			pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Scope: scope, Request: r.ID})
			s.Gone(scope, r.ID)
		} else {
			pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: scope, Request: r.ID})
		}
		store.Put(t.Context(), "t", orders.Key{byte(i)}, []int{1, 0, 2})
	}
	s = again(t, s, dir)
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

// What was forgotten stays forgotten after a restart, and the order that was chosen since is the place's.
func TestForgottenStaysForgotten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	store := s.Orders(orders.NewMemory(0, 0))
	of := func(tenant string, i int) contextpilot.Request {
		r := request(i)
		r.Scope.Tenant = tenant
		return r
	}
	for _, tenant := range []string{"", "t", "other"} {
		store.Put(t.Context(), tenant, orders.Key{1}, []int{1, 0, 2})
		s.Planned(of(tenant, 1), nil)
	}
	for _, tenant := range []string{"", "t"} {
		if err := store.Forget(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
	}
	store.Put(t.Context(), "t", orders.Key{1}, []int{2, 1, 0})
	s = again(t, s, dir)
	defer s.Close()
	pilot, back := newPilot(t), orders.NewMemory(0, 0)
	if got, err := s.Restore(back, pilot); err != nil || got.Skipped != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	for tenant, want := range map[string][]int{"": nil, "t": {2, 1, 0}, "other": {1, 0, 2}} {
		if got, _ := back.Get(t.Context(), tenant, orders.Key{1}); !slices.Equal(got, want) {
			t.Errorf("tenant %q: order %v, want %v", tenant, got, want)
		}
	}
	if got := pilot.Scopes(); len(got) != 1 || got[0].Tenant != "other" {
		t.Errorf("the index came back of %+v, want the other tenant's alone", got)
	}
}

// What the engine had lost before a restart does not come back: that of some models, then of all.
func TestClearedStaysCleared(t *testing.T) {
	for name, c := range map[string]struct {
		models []string
		want   map[string]int // live prompts
	}{
		"one model": {[]string{"m"}, map[string]int{"m": 1, "n": 2}},
		"both":      {[]string{"n", "m"}, map[string]int{"m": 1, "n": 1}},
		"another":   {[]string{"o"}, map[string]int{"m": 2, "n": 2}},
		"all":       {nil, map[string]int{"m": 1, "n": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			of := func(model string, i int) contextpilot.Request {
				r := request(i)
				r.Scope.Model = model
				return r
			}
			for _, model := range []string{"m", "n"} {
				s.Planned(of(model, 1), nil)
			}
			s.Cleared(c.models)
			for _, model := range []string{"m", "n"} {
				s.Planned(of(model, 2), nil)
			}
			s = again(t, s, dir)
			defer s.Close()
			pilot := newPilot(t)
			if got, err := s.Restore(orders.NewMemory(0, 0), pilot); err != nil || got.Skipped != 0 {
				t.Fatalf("%+v, %v", got, err)
			}
			for model, want := range c.want {
				got := 0
				pilot.View(of(model, 0).Scope, func(v contextpilot.View) { got, _ = v.Size() })
				if got != want {
					t.Errorf("model %s: %d prompts came back, want %d", model, got, want)
				}
			}
		})
	}
}

// What comes back is what was sent, whoever chose the order, whatever else is in the index by then.
func TestOrdersComeBackAsSent(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	chosen, decided := request(1), request(1)
	chosen.ID, decided.ID, decided.Fixed = "chosen", "decided", true
	chosen.Scope.Replica, decided.Scope.Replica = "of chosen", "of decided"
	for _, r := range []*contextpilot.Request{&chosen, &decided} {
		seen := *r
		seen.ID = "before " + r.ID
		s.Planned(seen, nil)
		slices.Reverse(r.Blocks)
	}
	sent := make([]int, len(chosen.Blocks))
	for i := range sent {
		sent[i] = (i + 3) % len(sent)
	}
	s.Planned(chosen, sent)
	s.Planned(decided, nil)
	s = again(t, s, dir)
	defer s.Close()
	pilot := newPilot(t)
	if got, err := s.Restore(orders.NewMemory(0, 0), pilot); err != nil || got.Plans != 4 || got.Skipped != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	probe := chosen
	probe.ID, probe.Fixed, probe.Blocks = "probe", true, nil
	for _, i := range sent {
		probe.Blocks = append(probe.Blocks, chosen.Blocks[i])
	}
	for _, r := range []contextpilot.Request{probe, decided} {
		r.ID = "probe " + r.ID
		if got := pilot.Plan(r).Prefix.Blocks; got != len(r.Blocks) {
			t.Errorf("%s: %d blocks of %d are in the index as they were sent", r.ID, got, len(r.Blocks))
		}
	}
}
