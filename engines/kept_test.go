package engines_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// What a replica has seen lately counts as far as its cache still has it: a replica that reports losses is not chosen for what
// it once read.
func TestFamiliarOfSmallCache(t *testing.T) {
	cost := func(lose func(r *engines.Router, plans []contextpilot.Plan)) (cost float64, m contextpilot.Match) {
		r, _ := newRouter(t, loose, "east")
		var plans []contextpilot.Plan
		for _, list := range []string{"a b c", "d e f", "g h i", "j k l"} {
			plans = append(plans, serve(t, r, contextpilot.Request{Blocks: docs(list)}).Plan)
		}
		lose(r, plans)
		s := r.Scores(contextpilot.Request{Blocks: docs("c f x")})[0]
		return s.Cost, s.Match
	}
	observe := func(r *engines.Router, kind contextpilot.EventKind, id string, tokens int) {
		t.Helper()
		if err := r.Observe("east", contextpilot.Event{Kind: kind, Request: id, Tokens: tokens}); err != nil {
			t.Fatal(err)
		}
	}
	all, m := cost(func(*engines.Router, []contextpilot.Plan) {})
	if m.Familiar != 200 || m.Tokens != 0 {
		t.Fatalf("match %+v, want 200 familiar tokens", m)
	}
	bonus := 300 - all // its price is 1: no other replica
	for name, c := range map[string]struct {
		lose func(r *engines.Router, plans []contextpilot.Plan)
		want float64 // part of the bonus that is left
	}{
		"one of four gone": {func(r *engines.Router, plans []contextpilot.Plan) {
			observe(r, contextpilot.Gone, plans[0].RequestID, 0)
		}, 0.75},
		"two of four to a third": {func(r *engines.Router, plans []contextpilot.Plan) {
			observe(r, contextpilot.Shrunk, plans[0].RequestID, 100)
			observe(r, contextpilot.Shrunk, plans[1].RequestID, 100)
			observe(r, contextpilot.Shrunk, plans[1].RequestID, 200) // nothing comes back
		}, 2.0 / 3},
		"cleared, and read again": {func(r *engines.Router, _ []contextpilot.Plan) {
			observe(r, contextpilot.Cleared, "", 0)
			for _, list := range []string{"a b c", "d e f"} {
				serve(t, r, contextpilot.Request{Blocks: docs(list)})
			}
		}, 1},
	} {
		got, m := cost(c.lose)
		if want := 300 - c.want*bonus; m.Familiar != 200 || got < want-0.001 || got > want+0.001 {
			t.Errorf("%s: cost %g of %+v, want %g", name, got, m, want)
		}
	}
}
