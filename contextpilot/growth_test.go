package contextpilot_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// TestManyTextsUnderOneLabel: a history of very many different texts under one label is read in one pass. In time that grows with
// their square, this test would take minutes.
func TestManyTextsUnderOneLabel(t *testing.T) {
	p, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	first := p.Plan(contextpilot.Request{ID: "a", Session: "s", Blocks: []contextpilot.Block{{ID: "doc", Text: "first"}}})
	var history strings.Builder
	history.WriteString(first.Prompt("?"))
	for i := range 400_000 {
		fmt.Fprintf(&history, "<doc a>\n%d\n</doc>\n", i)
	}
	plan := p.Plan(contextpilot.Request{
		ID: "b", Session: "s", Prior: []string{history.String()}, Behind: first.End,
		Blocks: []contextpilot.Block{{ID: "doc", Text: "first"}},
	})
	if plan.Fault != nil || len(plan.Items) != 1 || plan.Items[0].Ref == nil {
		t.Errorf("items %+v, fault %v: want a reference", plan.Items, plan.Fault)
	}
}

// TestDepthsDoNotWrap: blocks that claim to be as long as can be are counted up to what can be counted.
func TestDepthsDoNotWrap(t *testing.T) {
	p, err := contextpilot.New(contextpilot.Config{Policy: "retrieval"})
	if err != nil {
		t.Fatal(err)
	}
	blocks := make([]contextpilot.Block, 3000)
	for i := range blocks {
		blocks[i] = contextpilot.Block{ID: fmt.Sprint(i), Text: fmt.Sprint(i), Tokens: 1 << 30}
	}
	p.Plan(contextpilot.Request{ID: "a", Blocks: blocks})
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "a", Output: 1 << 30})
	plan := p.Plan(contextpilot.Request{ID: "b", Blocks: blocks})
	if err := p.Check(); err != nil || plan.Prefix.Tokens < 1<<30 || p.Stats().IndexTokens < 1<<30 {
		t.Errorf("%d tokens expected, %d in the index, %v", plan.Prefix.Tokens, p.Stats().IndexTokens, err)
	}
}

// TestCountersOnlyRise: what a scope has dropped is still counted when the scope is gone.
func TestCountersOnlyRise(t *testing.T) {
	p, err := contextpilot.New(contextpilot.Config{Capacity: 4})
	if err != nil {
		t.Fatal(err)
	}
	scope := contextpilot.Scope{Replica: "east"}
	for i := range 9 {
		p.Plan(contextpilot.Request{ID: fmt.Sprint(i), Scope: scope, Blocks: []contextpilot.Block{{
			ID: fmt.Sprint(i), Text: fmt.Sprint(i),
			Tokens: 2,
		}}})
	}
	before := p.Stats().RequestsDropped
	p.DropReplica("east")
	if after := p.Stats().RequestsDropped; before == 0 || after != before {
		t.Errorf("%d requests were dropped, %d after their scope has gone", before, after)
	}
}

// TestStatsDoNotWait: a scope that is busy holds up who asks for its figures, not the plans of others.
func TestStatsDoNotWait(t *testing.T) {
	busy, free := make(chan struct{}), make(chan struct{})
	var clock atomic.Int64
	p, err := contextpilot.New(contextpilot.Config{
		Now:       func() time.Time { return time.Unix(clock.Load(), 0) },
		NewPolicy: func() contextpilot.Policy { return blocking{busy, free} },
	})
	if err != nil {
		t.Fatal(err)
	}
	block := []contextpilot.Block{{ID: "a", Text: "a"}}
	other := contextpilot.Scope{Tenant: "other"}
	p.Plan(contextpilot.Request{ID: "quick", Scope: other, Blocks: block})
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Plan(contextpilot.Request{ID: "slow", Blocks: block})
	}()
	<-busy
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		p.Stats()
	}()
	time.Sleep(20 * time.Millisecond) // Stats waits for the busy scope by now
	clock.Add(60)
	p.Plan(contextpilot.Request{ID: "quick too", Scope: other, Blocks: block})
	close(free)
	<-done
	<-asked
}

// blocking orders a request named slow only when it may.
type blocking struct{ busy, free chan struct{} }

func (blocking) Name() string { return "blocking" }

func (b blocking) Order(dst []int, q contextpilot.Query) []int {
	if q.Request == "slow" {
		close(b.busy)
		<-b.free
	}
	return slices.AppendSeq(dst, func(yield func(int) bool) {
		for i := range q.Blocks {
			if !yield(i) {
				return
			}
		}
	})
}
