package contextpilot_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// curious is a user's policy with all that a Policy may have.
type curious struct {
	contextpilot.Policy
	called map[string]int
	past   int
}

func (c *curious) Peek(dst []int, q contextpilot.Query) (order []int, familiar int) {
	c.called["Peek"]++
	return c.Order(dst, q), 7
}

func (c *curious) Await(requests [][]contextpilot.Key) { c.called["Await"] += len(requests) }
func (c *curious) Past() int                           { return c.past }
func (c *curious) ForgetPast(blocks int)               { c.called["ForgetPast"]++; c.past -= min(blocks, c.past) }

func (c *curious) Why() contextpilot.Why {
	c.called["Why"]++
	return contextpilot.Why{Rule: "own"}
}

// A user's policy gets what the built-in ones get.
func TestPolicyMethods(t *testing.T) {
	inner, err := contextpilot.NewPolicy("sorted")
	if err != nil {
		t.Fatal(err)
	}
	c := &curious{Policy: inner, called: map[string]int{}, past: 100}
	p := newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy { return c }, MaxHistory: 50})
	plans := p.PlanTogether([]contextpilot.Request{{Blocks: blocks("b", "a")}, {Blocks: blocks("c", "a")}})
	equal(t, "rule", "own", plans[1].Why.Rule)
	equal(t, "familiar", 7, p.Match(contextpilot.Request{Blocks: blocks("b", "a")}).Familiar)
	for _, name := range []string{"Peek", "Await", "ForgetPast", "Why"} {
		if c.called[name] == 0 {
			t.Errorf("%s was not called: %v", name, c.called)
		}
	}
	if c.past > 50 {
		t.Errorf("%d blocks of the past are left", c.past)
	}
}
