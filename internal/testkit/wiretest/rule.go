package wiretest

import (
	"path"
	"slices"
	"testing"
)

// Kind says how a Rule changes a comparison.
type Kind uint8

// The kinds of rules.
const (
	// Ours: we differ here; the value must be Want, or what Check accepts.
	Ours Kind = iota
	// Free: any value of the same type.
	Free
	// AnyOrder: a list of the same items in any order.
	AnyOrder
)

// Absent as Rule.Want: we leave the member out.
var Absent = any(absent{})

type absent struct{}

// Rule is a named exception to equality with the recordings.
type Rule struct {
	Example  string // pattern of path.Match for names; "" means all
	Steps    []int  // which steps of it, from 0; nil means all
	Endpoint string // "POST /search"; "" means all
	// At is the place in the exchange, a pattern of path.Match: "status", "body/stats/num_nodes", "body/results/*/new_docs",
	// "header/x-contextpilot-result", "upstream/json/rid".
	At   string
	Kind Kind
	// Want is what we answer instead, as decoded JSON with placeholders, or Absent. A placeholder that the recording does
	// not have may be used.
	Want any
	// Check replaces Want where the value follows from the exchange.
	Check func(x Exchange, got any) error
	// Why says why this may be so. Rules of one reason may share it.
	Why string
}

func (r Rule) applies(ex Example, step int, at string) bool {
	return matches(r.Example, ex.Name) && (r.Steps == nil || slices.Contains(r.Steps, step)) &&
		(r.Endpoint == "" || r.Endpoint == ex.Steps[step].Endpoint()) && matches(r.At, at)
}

func matches(pattern, s string) bool {
	ok, err := path.Match(pattern, s)
	return pattern == "" || err == nil && ok
}

// rule returns the first rule for a place, and marks it as needed.
func (r *Runner) rule(ex Example, step int, at string) *Rule {
	for i := range r.Rules {
		if r.Rules[i].applies(ex, step, at) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.used == nil {
				r.used = make([]bool, len(r.Rules))
			}
			r.used[i] = true
			return &r.Rules[i]
		}
	}
	return nil
}

// Unused reports rules that no exchange needed. To be called when all examples have run.
func (r *Runner) Unused(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, rule := range r.Rules {
		if r.used == nil || !r.used[i] {
			t.Errorf("rule %d is not needed: %s %s %s (%s)", i, rule.Example, rule.Endpoint, rule.At, rule.Why)
		}
	}
}
