package contextpilot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

var errBroken = errors.New("broken")

// once fails the first call of a stage.
func once(stage string, fail func() error) func(string) error {
	done := false
	return func(s string) error {
		if s != stage || done {
			return nil
		}
		done = true
		return fail()
	}
}

var failures = map[string]func() error{
	"error": func() error { return errBroken },
	"panic": func() error { panic("broken") },
}

// plain reports whether a plan is retrieval order with every block in full, and says why.
func plain(t *testing.T, p contextpilot.Plan, stage, ids string) {
	t.Helper()
	equal(t, "blocks sent in full", ids, sent(p))
	equal(t, "references, left out, notes", 0, len(refs(p))+len(p.LeftOut)+len(notes(p)))
	if !errors.Is(p.Fault, contextpilot.ErrFault) || !strings.Contains(fmt.Sprint(p.Fault), ": "+stage+": ") ||
		!strings.Contains(fmt.Sprint(p.Fault), "broken") {
		t.Errorf("fault %q, want one of stage %s", p.Fault, stage)
	}
	blocks, lines, err := readStrict(p.Context())
	if err != nil || len(lines) != 0 || len(blocks) != len(strings.Fields(ids)) {
		t.Errorf("context %q: %v", p.Context(), err)
	}
}

func TestStageFault(t *testing.T) {
	for _, stage := range []string{"index", "dedup", "reorder", "annotate"} {
		for kind, fail := range failures {
			t.Run(stage+" "+kind, func(t *testing.T) {
				p := newPilot(t, contextpilot.Config{Policy: "sorted"})
				first := p.Plan(contextpilot.Request{Session: "s", Blocks: blocks("b", "a")})
				equal(t, "before", "a b", sent(first))
				prior := []string{first.Prompt("q"), "answer"}
				p.SetInject(once(stage, fail))
				// d is listed twice: after a fault not even that is looked at.
				req := contextpilot.Request{ID: "r", Session: "s", Blocks: blocks("d", "c", "a", "d"), Prior: prior, Behind: first.End}
				bad := p.Plan(req)
				plain(t, bad, stage, "d c a d")
				equal(t, "faults", map[string]int64{stage: 1}, p.Stats().FaultsByStage)
				if kind == "error" && !errors.Is(bad.Fault, errBroken) {
					t.Errorf("fault %v does not wrap its cause", bad.Fault)
				}
				if err := p.Check(); err != nil {
					t.Error(err)
				}
				next := p.Plan(contextpilot.Request{ID: "next", Session: "s", Blocks: blocks("d", "a", "f", "b", "e"), Prior: append(prior,
					bad.Prompt("q")), Behind: bad.End})
				equal(t, "after", "e f; d a b", sent(next)+"; "+refs(next))
				equal(t, "fault of the next plan", nil, next.Fault)
				equal(t, "turn of the next plan", 3, next.Turn)
			})
			t.Run("batch "+stage+" "+kind, func(t *testing.T) {
				p := newPilot(t, contextpilot.Config{Policy: "sorted"})
				p.SetInject(once(stage, fail))
				reqs := []contextpilot.Request{{ID: "1", Blocks: blocks("b", "a", "b")}, {ID: "2", Blocks: blocks("d", "c")}}
				b, err := p.PlanBatch(context.Background(), reqs)
				if err != nil {
					t.Fatal(err)
				}
				plain(t, b.Plans[0], stage, "b a b")
				if stage == "reorder" { // of all requests at once
					plain(t, b.Plans[1], stage, "d c")
				} else {
					equal(t, "the other request", "c d", sent(b.Plans[1]))
				}
				equal(t, "faults", int64(1), p.Stats().Faults())
				equal(t, "recorded", int64(2), p.Stats().LiveRequests)
				again, err := p.PlanBatch(context.Background(), reqs)
				if err != nil || again.Plans[0].Fault != nil || sent(again.Plans[0]) != "a b" {
					t.Errorf("next batch: %v, %v, %s", err, again.Plans[0].Fault, sent(again.Plans[0]))
				}
			})
		}
	}
}

// broken is a policy of a user that does one thing wrong.
type broken struct{ where string }

func (b *broken) fail(where string) {
	if b.where == where {
		panic("broken policy")
	}
}

func (b *broken) Name() string { return "broken" }

func (b *broken) Order(dst []int, q contextpilot.Query) []int {
	b.fail("Order")
	for i := range q.Blocks {
		dst = append(dst, len(q.Blocks)-1-i)
	}
	switch b.where {
	case "twice":
		dst[0] = dst[len(dst)-1]
	case "too few":
		dst = dst[1:]
	case "out of range":
		dst[0] = len(dst)
	case "negative":
		dst[0] = -1
	}
	return dst
}

func (b *broken) Sent(string, contextpilot.Query, []int) { b.fail("Sent") }
func (b *broken) Gone(string)                            { b.fail("Gone") }

func brokenPilot(t *testing.T, where string) *contextpilot.Pilot {
	return newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy { return &broken{where} }})
}

func TestBrokenOrder(t *testing.T) {
	for _, where := range []string{"Order", "twice", "too few", "out of range", "negative"} {
		t.Run(where, func(t *testing.T) {
			p := brokenPilot(t, where)
			for i := range 3 {
				got := p.Plan(contextpilot.Request{Blocks: blocks("a", "b", "c")})
				plain(t, got, "reorder", "a b c")
				equal(t, "faults", int64(i+1), p.Stats().FaultsByStage["reorder"])
			}
			b, err := p.PlanBatch(context.Background(), []contextpilot.Request{{Blocks: blocks("a", "b")}, {Blocks: blocks("c", "d")}})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "batch", "a b; c d", sent(b.Plans[0])+"; "+sent(b.Plans[1]))
			equal(t, "is a fault", true, errors.Is(b.Plans[0].Fault, contextpilot.ErrFault) && errors.Is(b.Plans[1].Fault, contextpilot.ErrFault))
			equal(t, "order", []int{0, 1}, b.Order)
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A policy that cannot learn loses the index, not the plan.
func TestBrokenSent(t *testing.T) {
	p := brokenPilot(t, "Sent")
	got := p.Plan(contextpilot.Request{Blocks: blocks("a", "b")})
	equal(t, "plan", "b a", sent(got))
	equal(t, "faults", int64(1), p.Stats().Faults())
	prior := []string{got.Prompt("q"), "answer"}
	second := p.Plan(contextpilot.Request{Blocks: blocks("a", "c"), Prior: prior, Behind: got.End})
	third := p.Plan(contextpilot.Request{Blocks: blocks("a", "c", "d"), Prior: append(prior, second.Prompt("q")), Behind: second.End})
	equal(t, "later turns", "c; a, d; a c", sent(second)+"; "+refs(second)+", "+sent(third)+"; "+refs(third))
	b, err := p.PlanBatch(context.Background(), []contextpilot.Request{{Blocks: blocks("a", "b")}, {Blocks: blocks("c", "d")}})
	if err != nil {
		t.Fatal(err)
	}
	plain(t, b.Plans[0], "reorder", "a b") // the batch algorithm learns, too
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

func TestBrokenGone(t *testing.T) {
	p := brokenPilot(t, "Gone")
	plan := func(id string) {
		t.Helper()
		equal(t, "plan", "b a", sent(p.Plan(contextpilot.Request{ID: id, Session: "s", Blocks: blocks("a", "b")})))
	}
	plan("1")
	plan("1") // replaced: the policy hears of it
	equal(t, "faults", int64(1), p.Stats().Faults())
	equal(t, "applied", 1, p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "1"}))
	equal(t, "faults", int64(2), p.Stats().Faults())
	equal(t, "live", int64(0), p.Stats().LiveRequests)
	plan("2")
	equal(t, "applied", 1, p.Observe(contextpilot.Event{Kind: contextpilot.Shrunk, Request: "2"}))
	plan("3")
	plan("4")
	equal(t, "applied", 1, p.Observe(contextpilot.Event{Kind: contextpilot.Cleared}))
	equal(t, "live", int64(0), p.Stats().LiveRequests)
	equal(t, "faults", int64(5), p.Stats().Faults())
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// batcher returns for batches what it was made with.
type batcher struct {
	broken
	answer func(qs []contextpilot.Query) ([][]int, []int, [][]int, error)
}

func (b *batcher) OrderBatch(_ context.Context, qs []contextpilot.Query) ([][]int, []int, [][]int, error) {
	return b.answer(qs)
}

func TestBrokenBatch(t *testing.T) {
	right := [][]int{{1, 0}, {1, 0}}
	for name, answer := range map[string]func([]contextpilot.Query) ([][]int, []int, [][]int, error){
		"panic":   func([]contextpilot.Query) ([][]int, []int, [][]int, error) { panic("broken") },
		"error":   func([]contextpilot.Query) ([][]int, []int, [][]int, error) { return nil, nil, nil, errBroken },
		"nothing": func([]contextpilot.Query) ([][]int, []int, [][]int, error) { return nil, nil, nil, nil },
		"order": func([]contextpilot.Query) ([][]int, []int, [][]int, error) {
			return [][]int{{0, 0}, {1, 0}}, []int{0, 1}, [][]int{{0, 1}}, nil
		},
		"schedule": func([]contextpilot.Query) ([][]int, []int, [][]int, error) {
			return right, []int{1, 1}, [][]int{{1, 1}}, nil
		},
		"groups": func([]contextpilot.Query) ([][]int, []int, [][]int, error) {
			return right, []int{1, 0}, [][]int{{0}, {1}}, nil
		},
		"no groups": func([]contextpilot.Query) ([][]int, []int, [][]int, error) { return right, []int{1, 0}, nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy { return &batcher{answer: answer} }})
			b, err := p.PlanBatch(context.Background(), []contextpilot.Request{{Blocks: blocks("a", "b")}, {Blocks: blocks("c", "d")}})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "retrieval order", "a b; c d", sent(b.Plans[0])+"; "+sent(b.Plans[1]))
			equal(t, "is a fault", true, errors.Is(b.Plans[0].Fault, contextpilot.ErrFault) && errors.Is(b.Plans[1].Fault, contextpilot.ErrFault))
			equal(t, "faults", map[string]int64{"reorder": 1}, p.Stats().FaultsByStage)
			equal(t, "live", int64(2), p.Stats().LiveRequests)
		})
	}
}

func TestCancelledBatch(t *testing.T) {
	for _, policy := range contextpilot.PolicyNames() {
		p := newPilot(t, contextpilot.Config{Policy: policy})
		p.Plan(contextpilot.Request{Session: "s", Blocks: blocks("a", "b")})
		before := p.Stats()
		reqs := []contextpilot.Request{
			{Session: "s", Blocks: blocks("a", "b")},
			{Session: "new", Blocks: blocks("c", "d")},
			{Blocks: blocks("d")},
		}
		ctx, cancel := context.WithCancel(context.Background())
		stop := func(stage string) error {
			if stage == "reorder" { // late: the requests are prepared
				cancel()
			}
			return nil
		}
		p.SetInject(stop)
		_, err := p.PlanBatch(ctx, reqs)
		equal(t, policy+": late: is cancelled", true, errors.Is(err, context.Canceled))
		equal(t, policy+": late", before, p.Stats())
		_, err = p.PlanBatch(ctx, reqs)
		equal(t, policy+": early: is cancelled", true, errors.Is(err, context.Canceled))
		equal(t, policy+": early", before, p.Stats())
	}
}

// recorder calls back, which it may do because no lock is held.
type recorder struct {
	t     *testing.T
	pilot *contextpilot.Pilot
	calls int
}

func (r *recorder) Planned(_ contextpilot.Scope, p *contextpilot.Plan, took time.Duration) {
	r.calls++
	r.pilot.Stats()
	if p.RequestID == "taken back" {
		r.pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: p.RequestID})
	}
	if took < 0 {
		r.t.Errorf("took %v", took)
	}
}

func (r *recorder) Observed(contextpilot.Event, bool) {
	r.calls++
	r.pilot.Stats()
}

func TestRecorderHoldsNoLock(t *testing.T) {
	r := &recorder{t: t}
	r.pilot = newPilot(t, contextpilot.Config{Recorder: r})
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.pilot.Plan(contextpilot.Request{ID: "taken back", Session: "s", Blocks: blocks("a")})
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("Plan calls the recorder with a lock held")
	}
	equal(t, "calls", 2, r.calls)
}

// nameless is a policy whose name cannot be had.
type nameless struct{ broken }

func (*nameless) Name() string { panic("broken name") }

// A policy that cannot be made is not worth a request: the scope keeps retrieval order, and the fault is counted.
func TestBrokenNewPolicy(t *testing.T) {
	for name, bad := range map[string]func() contextpilot.Policy{
		"panic": func() contextpilot.Policy { panic("broken") },
		"nil":   func() contextpilot.Policy { return nil },
		"name":  func() contextpilot.Policy { return &nameless{} },
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			p := newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy {
				if calls++; calls == 1 { // New tries it
					return &broken{}
				}
				return bad()
			}})
			for range 2 {
				got := p.Plan(contextpilot.Request{Blocks: blocks("b", "a")})
				equal(t, "plan", "b a, retrieval", sent(got)+", "+got.Policy)
			}
			equal(t, "faults", map[string]int64{"reorder": 1}, p.Stats().FaultsByStage)
		})
	}
}

// picky cannot count one text.
type picky struct{ contextpilot.Estimate }

func (c picky) Count(text string) int {
	if text == "broken" {
		panic("broken")
	}
	return c.Estimate.Count(text)
}

// flaky cannot count one text the second time.
type flaky struct {
	contextpilot.Estimate
	seen *int
}

func (c flaky) Count(text string) int {
	if text == "x" {
		if *c.seen++; *c.seen == 2 {
			panic("broken")
		}
	}
	return c.Estimate.Count(text)
}

// Nor does one of a batch whose history cannot be counted once it is known where it goes on.
func TestFaultBehindATurnOfTheBatch(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "retrieval", Tokenizer: flaky{seen: new(int)}})
	b, err := p.PlanBatch(t.Context(), []contextpilot.Request{{Session: "s", Blocks: big("a")}, {
		Session: "s", Blocks: big("b"),
		Prior: []string{"x"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "sent", "a, b", sent(b.Plans[0])+", "+sent(b.Plans[1]))
	equal(t, "faults", map[string]int64{"index": 1}, p.Stats().FaultsByStage)
	equal(t, "expected in cache", 0, p.Plan(contextpilot.Request{Blocks: big("b")}).Prefix.Tokens)
}

// A request with a history whose blocks cannot be counted does not enter the index as if its prompt began with them.
func TestFaultBehindAHistory(t *testing.T) {
	for _, session := range []string{"", "s"} {
		for _, batch := range []bool{false, true} {
			p := newPilot(t, contextpilot.Config{Tokenizer: picky{}})
			req := contextpilot.Request{Session: session, Prior: []string{"x"}, Blocks: append(big("a"), contextpilot.Block{Text: "broken"})}
			if batch {
				if _, err := p.PlanBatch(t.Context(), []contextpilot.Request{req}); err != nil {
					t.Fatal(err)
				}
			} else {
				p.Plan(req)
			}
			equal(t, "faults", map[string]int64{"index": 1}, p.Stats().FaultsByStage)
			got := p.Plan(contextpilot.Request{Blocks: big("b", "a")})
			equal(t, "sent", "b a", sent(got))
			equal(t, "expected in cache", 0, p.Plan(contextpilot.Request{Blocks: big("a")}).Prefix.Tokens)
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}
