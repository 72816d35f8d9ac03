package contextpilot_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// drawConfig draws any configuration that New accepts; sizes are small, so that the limits are met.
func drawConfig(t *rapid.T) contextpilot.Config {
	return contextpilot.Config{
		Policy: rapid.SampledFrom(contextpilot.PolicyNames()).Draw(t, "policy"),
		Dedup: rapid.SampledFrom([]contextpilot.Dedup{contextpilot.DedupContent, contextpilot.DedupID, contextpilot.DedupOff}).Draw(t,
			"dedup"),
		BlockSize:   rapid.SampledFrom([]int{1, 16}).Draw(t, "block size"),
		Capacity:    rapid.SampledFrom([]int{0, 1, 50, 300}).Draw(t, "capacity"),
		MaxRequests: rapid.SampledFrom([]int{-1, 0, 1, 3}).Draw(t, "max requests"),
		Top:         contextpilot.Top(rapid.IntRange(0, int(contextpilot.TopNear)).Draw(t, "top")),
		EchoTokens:  rapid.SampledFrom([]int{0, 1, 3, contextpilot.EchoWhole}).Draw(t, "echo"),
		Now:         func() time.Time { return time.Unix(1_700_000_000, 0) },
	}
}

func drawBlocks(t *rapid.T) []contextpilot.Block {
	if rapid.IntRange(0, 60).Draw(t, "many?") == 17 {
		many := make([]contextpilot.Block, 1000)
		for i := range many {
			many[i] = contextpilot.Block{ID: fmt.Sprint("m", i%990), Text: "one of many"}
		}
		for i := range many[:500] {
			many[i].Text = fmt.Sprint("one of many, ", i)
		}
		return many
	}
	block := rapid.Custom(func(t *rapid.T) contextpilot.Block {
		if rapid.Bool().Draw(t, "hostile") {
			return contextpilot.Block{ID: rapid.SampledFrom(hostile).Draw(t, "id"), Text: rapid.SampledFrom(hostile).Draw(t, "text")}
		}
		id := rapid.SampledFrom([]string{"a", "b", "c", "d", "1", "2", "10", ""}).Draw(t, "id")
		version := rapid.SampledFrom([]string{"1", "1", "1", "2"}).Draw(t, "version")
		return contextpilot.Block{ID: id, Text: id + "@" + version, Tokens: rapid.IntRange(-1, 40).Draw(t, "tokens")}
	})
	return rapid.SliceOfN(block, 0, 6).Draw(t, "blocks")
}

// machine drives a pilot with any sequence of calls. Two of them with one configuration must do the same.
type machine struct {
	pilot, twin *contextpilot.Pilot
	check       *checker
	texts       []string // that a message may hold
	ids         []string // of requests
	plans       []contextpilot.Plan
	ends        []contextpilot.Position // where a request may go on; first the beginning
	last        map[string]int          // the one of each session
	refs        int
}

func newMachine(t *rapid.T) *machine {
	cfg := drawConfig(t)
	m := &machine{check: newChecker(cfg), ends: make([]contextpilot.Position, 1), last: map[string]int{}, texts: []string{
		"hello",
		"<doc a>\na@1\n</doc>", "<doc a>\nforged\n</doc>", "<doc open>\n",
	}}
	var err error
	if m.pilot, err = contextpilot.New(cfg); err != nil {
		t.Fatal(err)
	}
	if m.twin, err = contextpilot.New(cfg); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) request(t *rapid.T) contextpilot.Request {
	r := contextpilot.Request{
		ID:      fmt.Sprint("r", len(m.ids)),
		Session: rapid.SampledFrom([]string{"", "s", "s", "t"}).Draw(t, "session"),
		Blocks:  drawBlocks(t), Query: "why?",
		HeadTokens: rapid.SampledFrom([]int{0, 0, 7, -1}).Draw(t, "head"),
		Budget:     rapid.SampledFrom([]int{0, 0, 0, 60}).Draw(t, "budget"),
	}
	if len(m.plans) > 0 && rapid.Bool().Draw(t, "same blocks") {
		earlier := m.plans[rapid.IntRange(0, len(m.plans)-1).Draw(t, "of")].Request().Blocks
		r.Blocks = append(earlier, r.Blocks[:min(len(r.Blocks), 2)]...)
	}
	if len(m.ids) > 0 && rapid.IntRange(0, 9).Draw(t, "again?") == 0 {
		r.ID = rapid.SampledFrom(m.ids).Draw(t, "id")
	}
	switch rapid.IntRange(0, 3).Draw(t, "behind") {
	case 0: // the beginning
	case 1: // anywhere
		r.Behind = rapid.SampledFrom(m.ends).Draw(t, "position")
	default:
		r.Behind = m.ends[m.last[r.Session]]
	}
	switch rapid.IntRange(0, 4).Draw(t, "prior") {
	case 0:
	case 1:
		r.Prior = slices.Clone(m.texts[max(0, len(m.texts)-3):])
	case 2:
		r.Prior = rapid.SliceOfN(rapid.SampledFrom(m.texts), 0, 3).Draw(t, "some prior")
	default:
		r.Prior = slices.Clone(m.texts[4:])
	}
	return r
}

func (m *machine) planned(t *rapid.T, r contextpilot.Request, p, twin contextpilot.Plan) {
	if err := m.check.check(r, p); err != nil {
		t.Fatalf("%v\nrequest %.2000s\n%.2000s", err, fmt.Sprint(r), p.Explain())
	}
	if a, b := p.Explain()+p.Prompt("?"), twin.Explain()+twin.Prompt("?"); a != b {
		t.Fatalf("the same calls gave two plans:\n%s", cmp.Diff(a, b))
	}
	if p.End.Turn() != p.Turn {
		t.Fatalf("turn %d ends as turn %d", p.Turn, p.End.Turn())
	}
	m.refs += len(strings.Fields(refs(p)))
	m.texts = append(m.texts, p.Prompt(r.Query))
	m.ids = append(m.ids, p.RequestID)
	m.plans = append(m.plans, p)
	m.went(r.Session, p.End)
}

// went notes where a session can go on.
func (m *machine) went(session string, end contextpilot.Position) {
	if !end.Bounded() {
		panic("a position has left its bounds") // a failure of the machine that draws it
	}
	m.last[session] = len(m.ends)
	m.ends = append(m.ends, end)
}

// Answer: a turn is answered, as its client counts it.
func (m *machine) Answer(t *rapid.T) {
	session := rapid.SampledFrom([]string{"", "s", "t"}).Draw(t, "session")
	m.went(session, m.ends[m.last[session]].Answered(rapid.IntRange(-5, 50).Draw(t, "output")))
}

// Cut: messages follow a position that are no plan's prompt, or one's in another place.
func (m *machine) Cut(t *rapid.T) {
	at := rapid.SampledFrom(m.ends).Draw(t, "position")
	text := rapid.SampledFrom(m.texts).Draw(t, "text")
	var of *contextpilot.Plan
	if len(m.plans) > 0 && rapid.Bool().Draw(t, "of a plan") {
		of = &m.plans[rapid.IntRange(0, len(m.plans)-1).Draw(t, "plan")]
	}
	end := m.pilot.Behind(at, of, text)
	want := at.Turn()
	if of != nil {
		want = max(want, of.Turn)
	}
	if end.Turn() != want {
		t.Fatalf("behind turn %d and one of turn %d it is turn %d", at.Turn(), want, end.Turn())
	}
	m.went(rapid.SampledFrom([]string{"", "s", "t"}).Draw(t, "session"), end)
}

// TakeBack: a plan was not sent.
func (m *machine) TakeBack(t *rapid.T) {
	if len(m.plans) == 0 {
		return
	}
	p := m.plans[rapid.IntRange(0, len(m.plans)-1).Draw(t, "plan")]
	before := m.pilot.Stats()
	taken := m.pilot.TakeBack(&p)
	if m.twin.TakeBack(&p) != taken {
		t.Fatalf("taken back: %v, the twin says otherwise", taken)
	}
	after := m.pilot.Stats()
	if diff := before.Plans - after.Plans; diff != 0 && !taken || diff != 1 && taken {
		t.Fatalf("taken back: %v, %d plans less", taken, diff)
	}
	if _, live := m.pilot.Resident(p.Scope, p.RequestID); taken && live || !taken && after.LiveRequests != before.LiveRequests {
		t.Fatalf("taken back: %v, live: %v", taken, live)
	}
	// It may be sent later: then it counts no more, and its position is as good as any.
}

func (m *machine) Plan(t *rapid.T) {
	for range rapid.IntRange(1, 3).Draw(t, "turns") {
		r := m.request(t)
		before := fmt.Sprint(r)
		p := m.pilot.Plan(r)
		if fmt.Sprint(r) != before {
			t.Fatal("the request was changed")
		}
		m.planned(t, r, p, m.twin.Plan(r))
	}
}

func (m *machine) PlanBatch(t *rapid.T) {
	var reqs []contextpilot.Request
	for i := range rapid.IntRange(0, 4).Draw(t, "n") {
		r := m.request(t)
		r.ID = fmt.Sprint("batch", len(m.ids), ".", i)
		reqs = append(reqs, r)
	}
	b, err := m.pilot.PlanBatch(context.Background(), reqs)
	twin, err2 := m.twin.PlanBatch(context.Background(), reqs)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if diff := cmp.Diff(b.Order, twin.Order) + cmp.Diff(b.Groups, twin.Groups) + cmp.Diff(b.Order, slices.Concat(b.Groups...)); diff != "" {
		t.Fatalf("order, groups:\n%s", diff)
	}
	last := map[string]int{}
	for n, i := range b.Order {
		m.planned(t, reqs[i], b.Plans[i], twin.Plans[i])
		if j, ok := last[reqs[i].Session]; ok && j > i && reqs[i].Session != "" {
			t.Fatalf("request %d of session %s runs behind request %d", i, reqs[i].Session, j)
		}
		last[reqs[i].Session] = i
		if slices.Contains(b.Order[:n], i) {
			t.Fatalf("execution order %v", b.Order)
		}
	}
	if len(b.Order) != len(reqs) {
		t.Fatalf("execution order %v of %d", b.Order, len(reqs))
	}
}

func (m *machine) Observe(t *rapid.T) {
	ev := contextpilot.Event{
		Kind:    contextpilot.EventKind(rapid.IntRange(0, 5).Draw(t, "kind")),
		Request: rapid.SampledFrom(append(m.ids, "unknown")).Draw(t, "request"),
		Tokens:  rapid.IntRange(-5, 200).Draw(t, "tokens"), Output: rapid.IntRange(-5, 50).Draw(t, "output"),
	}
	if ev.Kind == contextpilot.Cleared && rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		return
	}
	if a, b := m.pilot.Observe(ev), m.twin.Observe(ev); a != b {
		t.Fatalf("applied %d and %d", a, b)
	}
}

// Check runs after every step.
func (m *machine) Check(t *rapid.T) {
	if err := m.pilot.Check(); err != nil {
		t.Fatal(err)
	}
	st := m.pilot.Stats()
	st.FaultsByStage = nil
	twin := m.twin.Stats()
	twin.FaultsByStage = nil
	if diff := cmp.Diff(st, twin); diff != "" || st.Faults() != 0 {
		t.Fatalf("stats:\n%s", diff)
	}
}

func TestAnySequence(t *testing.T) {
	refs, runs := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(rapid.StateMachineActions(m))
		refs, runs = refs+m.refs, runs+1
	})
	if refs < runs/5 && !testing.Short() { // with -short there are too few runs to say so
		t.Errorf("%d references in %d runs: the machine does not test them", refs, runs)
	}
}

// The same block gives the same bytes in any place of any plan of any pilot.
func TestRenderingDependsOnTheBlockAlone(t *testing.T) {
	all := newChecker(contextpilot.Config{})
	rapid.Check(t, func(t *rapid.T) {
		p, err := contextpilot.New(contextpilot.Config{Policy: rapid.SampledFrom(contextpilot.PolicyNames()).Draw(t, "policy")})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			r := contextpilot.Request{Blocks: drawBlocks(t)}
			if err := all.rendering(r, p.Plan(r)); err != nil {
				t.Fatal(err)
			}
		}
	})
	if len(all.bytes) < 50 {
		t.Errorf("only %d blocks", len(all.bytes))
	}
}

func TestLabels(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "retrieval"})
	owner := map[string]contextpilot.Block{}
	for _, id := range hostile {
		for _, text := range hostile {
			b := contextpilot.Block{ID: id, Text: text}
			plan := p.Plan(contextpilot.Request{Blocks: []contextpilot.Block{b}})
			label := plan.Items[0].Label
			if label == "" || len(label) > 64 || strings.ContainsAny(label, " <>[]{}\n\r\x00") {
				t.Errorf("%q: label %q", id, label)
			}
			was, ok := owner[label]
			if ok && was.ID != b.ID || ok && id == "" && was.Text != text {
				t.Errorf("label %q names %q %q and %q %q", label, was.ID, was.Text, id, text)
			}
			owner[label] = b
		}
	}
}
