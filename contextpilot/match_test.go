package contextpilot_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// matched is a machine whose pilot is asked what prompts would find; its twin is not.
type matched struct{ *machine }

// Match asks, about known replicas and an unknown one.
func (m *matched) Match(t *rapid.T) {
	req := m.request(t)
	before := fmt.Sprint(req)
	one := m.pilot.Match(req)
	all := m.pilot.MatchReplicas(req, "", "unknown", "")
	if all[0] != one || all[2] != one {
		t.Fatalf("Match %+v, MatchReplicas %+v", one, all)
	}
	if want := (contextpilot.Match{Prompt: one.Prompt}); all[1] != want {
		t.Fatalf("of an unknown replica: %+v", all[1])
	}
	if fmt.Sprint(req) != before {
		t.Fatal("the request was changed")
	}
}

// Plan asks before it plans, and compares.
func (m *matched) Plan(t *rapid.T) {
	req := m.request(t)
	match := m.pilot.Match(req)
	plan := m.pilot.Plan(req)
	m.planned(t, req, plan, m.twin.Plan(req))
	if slices.Contains(m.ids[:len(m.ids)-1], req.ID) {
		return // it may be live: taken back by Plan only
	}
	if match.Plain != plan.Why.Plain || match.Tokens > plan.Prefix.Tokens {
		t.Fatalf("%+v, then\n%s", match, plan.Explain())
	}
	if more := plan.Prefix.Tokens - match.Tokens; more > 0 && more >= followed(plan, req.Query)+m.check.block {
		t.Fatalf("%+v, then %d tokens more, which are of no echo and no notes\n%s", match, more, plan.Explain())
	}
}

// followed returns how many tokens Plan may find behind the blocks, where Match does not look: of notes and echo, if all blocks are
// resident. The questions of these tests are too short to be followed alone.
func followed(plan contextpilot.Plan, question string) int {
	full := 0
	for _, it := range plan.Items {
		if it.Ref == nil {
			full++
		}
	}
	if plan.Prefix.Blocks < full || plan.Echo == nil && len(notes(plan)) == 0 {
		return 0
	}
	blocks := 0 // where they end
	for _, span := range plan.Spans() {
		blocks = span[1]
	}
	return contextpilot.Estimate{}.Count(plan.Prompt(question)[blocks:])
}

func TestMatchChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		t.Repeat(rapid.StateMachineActions(&matched{newMachine(t)}))
	})
}

// Sequences that are long enough for a policy to change its mind by what it has learned.
func TestMatchTeachesNothing(t *testing.T) {
	for _, policy := range contextpilot.PolicyNames() {
		if policy == "oracle" { // learns nothing, and takes long
			continue
		}
		t.Run(policy, func(t *testing.T) {
			pilot, twin := newPilot(t, contextpilot.Config{Policy: policy}), newPilot(t, contextpilot.Config{Policy: policy})
			sets := drifting(600, 8)
			found := 0
			for i, set := range sets {
				req := contextpilot.Request{ID: fmt.Sprint(i), Blocks: set}
				other := contextpilot.Request{ID: fmt.Sprint("other ", i), Blocks: sets[(i*7+3)%len(sets)]}
				pilot.Match(other)
				match := pilot.Match(req)
				pilot.Match(other)
				got, want := pilot.Plan(req), twin.Plan(req)
				if diff := cmp.Diff(want.Explain(), got.Explain()); diff != "" {
					t.Fatalf("request %d (-not asked +asked):\n%s", i, diff)
				}
				if !hinted(got) && match.Tokens != got.Prefix.Tokens {
					t.Fatalf("request %d: %+v, then\n%s", i, match, got.Explain())
				}
				found += match.Tokens
			}
			if found == 0 {
				t.Error("nothing was ever resident")
			}
			equal(t, "stats", twin.Stats(), pilot.Stats())
		})
	}
}

func hinted(p contextpilot.Plan) bool { return p.Hint != "" }

// drifting makes n sets of k blocks of topics that come and go, ranked differently each time.
func drifting(n, k int) [][]contextpilot.Block {
	out := make([][]contextpilot.Block, n)
	for i := range out {
		topic := (i*i/7 + i) % 5
		for j := range k {
			b := (i*(j+3) + j*j) % (2 * k)
			for slices.ContainsFunc(out[i], func(x contextpilot.Block) bool { return x.ID == fmt.Sprint(topic, "-", b) }) {
				b = (b + 1) % (2 * k)
			}
			id := fmt.Sprint(topic, "-", b)
			out[i] = append(out[i], contextpilot.Block{ID: id, Text: "text of " + id, Tokens: 16 + 16*(b%4)})
		}
	}
	return out
}

func TestMatch(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	a, b := contextpilot.Scope{Model: "m", Replica: "a"}, contextpilot.Scope{Model: "m", Replica: "b"}
	p.Plan(contextpilot.Request{Scope: a, HeadTokens: 64, Blocks: blocks("x", "y", "z")})
	p.Plan(contextpilot.Request{Scope: b, HeadTokens: 64, Blocks: blocks("z", "x")})
	req := contextpilot.Request{Scope: contextpilot.Scope{Model: "m"}, HeadTokens: 64, Blocks: blocks("z", "y", "x")}
	equal(t, "each in its own best order", []contextpilot.Match{
		{Prompt: 160, Tokens: 160, Plain: 64, Familiar: 96}, // x y z
		{Prompt: 160, Tokens: 128, Plain: 96, Familiar: 64}, // z x
		{Prompt: 160}, // nobody was ever there
	}, p.MatchReplicas(req, "a", "b", "c"))
	equal(t, "no names", []contextpilot.Match{}, p.MatchReplicas(req))
	equal(t, "scopes", int64(2), p.Stats().Scopes)

	req.Scope.Tenant = "other"
	equal(t, "another tenant", contextpilot.Match{Prompt: 160}, p.MatchReplicas(req, "a")[0])
	req.Scope = a
	req.Blocks = append(req.Blocks, blocks("x")...)
	equal(t, "a repeated block counts once", 160, p.Match(req).Prompt)
	req.Budget = 64
	equal(t, "over budget", 128, p.Match(req).Prompt)
}

// A question that has stood behind the same blocks before is found by Plan only, and nothing else is.
func TestMatchFollowsNoQuestion(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	req := contextpilot.Request{ID: "1", Blocks: blocks("x", "y"), Query: strings.Repeat("a question of many words ", 20)}
	p.Plan(req)
	req.ID = "2"
	match, plan := p.Match(req), p.Plan(req)
	equal(t, "matched", 64, match.Tokens)
	question := contextpilot.Estimate{}.Count(req.Query)
	if more := match.Prompt - 64 - question; more < 0 || more > len(req.Query)/64 { // counted in pieces
		t.Errorf("prompt of %d tokens, want 64 + %d", match.Prompt, question)
	}
	if more := plan.Prefix.Tokens - match.Tokens; more <= 0 || more > question {
		t.Errorf("Plan finds %d more, the question has %d", more, question)
	}
}

// Nor does it follow an echo, which stands behind the blocks as the question does. The same request is planned twice: the policy puts the
// best block first, so an echo shows it once more, and Plan finds that of the first time.
func TestMatchFollowsNoEcho(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "sorted", Top: contextpilot.TopEchoes})
	req := contextpilot.Request{ID: "1", Query: "why?", Blocks: []contextpilot.Block{
		{ID: "a", Text: "The best block has a sentence or two that are worth showing once more. This is the other one.", Tokens: 32},
		{ID: "b", Text: "Another one.", Tokens: 32},
	}}
	first := p.Plan(req)
	if first.Echo == nil || len(notes(first)) > 0 {
		t.Fatalf("an echo and no notes are needed\n%s", first.Explain())
	}
	req.ID = "2"
	match, plan := p.Match(req), p.Plan(req)
	equal(t, "matched", 64, match.Tokens)
	equal(t, "resident blocks", 2, plan.Prefix.Blocks)
	if more := plan.Prefix.Tokens - match.Tokens; more <= 0 || more > followed(plan, req.Query) {
		t.Errorf("Plan finds %d more\n%s", more, plan.Explain())
	}
}

func TestMatchInConversation(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	a, b := contextpilot.Scope{Replica: "a"}, contextpilot.Scope{Replica: "b"}
	first := p.Plan(contextpilot.Request{Session: "s", Scope: a, Blocks: blocks("x", "y")})
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: a, Request: first.RequestID, Output: 40})
	next := contextpilot.Request{
		Session: "s", Blocks: blocks("y", "z"), Prior: []string{first.Prompt(""), "answer"},
		Behind: first.End.Answered(40),
	}
	// x and y, the answer of 40 and z; y is referred to, by a note that is not counted. The next turn begins behind the answer.
	equal(t, "where it was, and elsewhere", []contextpilot.Match{
		{Prompt: 136, Tokens: 96, Plain: 96}, {Prompt: 136},
	}, p.MatchReplicas(next, "a", "b"))

	next.Scope = b
	second := p.Plan(next)
	equal(t, "the turn goes on elsewhere", 2, second.Turn)
	equal(t, "references", "y", refs(second))
	third := contextpilot.Request{
		Session: "s", Blocks: blocks("w"), Prior: append(next.Prior, second.Prompt(""), "answer"),
		Behind: second.End,
	}
	matches := p.MatchReplicas(third, "a", "b")
	if matches[1].Tokens <= matches[0].Tokens || matches[0].Tokens < 96 {
		t.Errorf("after the move: %+v", matches)
	}
	third.Prior[0] = "something else"
	equal(t, "an unknown history", 0, p.MatchReplicas(third, "b")[0].Tokens)
}

// A conversation of which the client has lost its position is matched as Plan will see it.
func TestMatchForgottenConversation(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	first := p.Plan(contextpilot.Request{Session: "s", Blocks: blocks("x", "y")})
	next := contextpilot.Request{Session: "s", Blocks: blocks("y"), Prior: []string{first.Prompt("")}, Behind: first.End}
	if m := p.Match(next); m.Tokens != 64 || m.Prompt != 64 {
		t.Errorf("remembered: %+v", m)
	}
	next.Behind = contextpilot.Position{}
	match, plan := p.Match(next), p.Plan(next)
	equal(t, "turn", 1, plan.Turn)
	equal(t, "resident", plan.Prefix.Tokens, match.Tokens)
	if match.Tokens != 0 || match.Prompt <= 32 { // all of y, and the history by its text
		t.Errorf("forgotten: %+v", match)
	}
}

// A stage that fails costs the match of its scope, and is counted; the request is planned as ever.
func TestMatchFault(t *testing.T) {
	for kind, fail := range failures {
		for _, stage := range []string{"index", "dedup", "reorder"} {
			t.Run(stage+" "+kind, func(t *testing.T) {
				p := newPilot(t, contextpilot.Config{})
				for _, r := range []string{"a", "b"} {
					p.Plan(contextpilot.Request{Scope: contextpilot.Scope{Replica: r}, Blocks: blocks("x", "y")})
				}
				p.SetInject(once(stage, fail))
				req := contextpilot.Request{Blocks: blocks("y", "x")}
				got := p.MatchReplicas(req, "a", "b")
				want := []contextpilot.Match{{}, {}}
				if stage == "reorder" { // which is each scope's own
					want = []contextpilot.Match{{Prompt: 64}, {Prompt: 64, Tokens: 64, Familiar: 64}}
				}
				equal(t, "matches", want, got)
				equal(t, "faults", map[string]int64{stage: 1}, p.Stats().FaultsByStage)
				req.Scope.Replica = "a"
				if plan := p.Plan(req); plan.Fault != nil || plan.Prefix.Tokens != 64 {
					t.Error(plan.Explain())
				}
			})
		}
	}
}

func TestDropReplica(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	var prior []string
	var at contextpilot.Position
	for _, s := range []contextpilot.Scope{
		{Replica: "a"},
		{Replica: "a", Tenant: "t"},
		{Replica: "a", Model: "m"},
		{Replica: "b"},
		{Model: "a"},
	} {
		plan := p.Plan(contextpilot.Request{Session: "s", Scope: s, Blocks: blocks("x", "y")})
		prior, at = []string{plan.Prompt("")}, plan.End
	}
	equal(t, "dropped", 3, p.DropReplica("a"))
	equal(t, "again", 0, p.DropReplica("a"))
	equal(t, "scopes", int64(2), p.Stats().Scopes)
	equal(t, "for their number", int64(0), p.Stats().ScopesDropped)
	equal(t, "what is left", []contextpilot.Match{{Prompt: 64}, {Prompt: 64, Tokens: 64, Plain: 64, Familiar: 64}},
		p.MatchReplicas(contextpilot.Request{Blocks: blocks("x", "y")}, "a", "b"))
	next := p.Plan(contextpilot.Request{Session: "s", Scope: contextpilot.Scope{Replica: "a"}, Blocks: blocks("y"), Prior: prior, Behind: at})
	equal(t, "conversations stay", "y", refs(next))
}

// Run it with -race.
func TestConcurrentMatch(t *testing.T) {
	for _, policy := range []string{"best", "paper", "frequency"} {
		t.Run(policy, func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{Policy: policy, MaxScopes: 3, MaxRequests: 50})
			names := []string{"0", "1", "2", "3"}
			var wg sync.WaitGroup
			for g := range 6 {
				wg.Go(func() {
					for i := range 100 {
						req := contextpilot.Request{Session: fmt.Sprint("s", (g+i)%4), Blocks: blocks(fmt.Sprint(i%5), fmt.Sprint(g), "x"), Query: "q"}
						for _, m := range p.MatchReplicas(req, names...) {
							if m.Tokens > m.Prompt || m.Prompt == 0 {
								t.Errorf("%+v", m)
							}
						}
						req.Scope.Replica = names[(g+i)%4]
						plan := p.Plan(req)
						p.Observe(contextpilot.Event{Kind: contextpilot.EventKind(1 + i%3), Scope: req.Scope, Request: plan.RequestID})
						if i%17 == 0 {
							p.DropReplica(names[i%4])
						}
					}
				})
			}
			wg.Wait()
			if err := p.Check(); err != nil || p.Stats().Faults() != 0 {
				t.Error(err, p.Stats())
			}
		})
	}
}

// Which of two replicas a request should go to: each is asked, with the order that is best there.
func ExamplePilot_MatchReplicas() {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	pilot.Plan(contextpilot.Request{Scope: contextpilot.Scope{Replica: "east"}, Blocks: passages("intro", "setup", "faq")})
	pilot.Plan(contextpilot.Request{Scope: contextpilot.Scope{Replica: "west"}, Blocks: passages("faq", "limits")})

	request := contextpilot.Request{Blocks: passages("limits", "setup", "intro")}
	names := []string{"east", "west"}
	for i, m := range pilot.MatchReplicas(request, names...) {
		fmt.Printf("%s: %d of %d tokens are resident\n", names[i], m.Tokens, m.Prompt)
	}
	// Output:
	// east: 240 of 360 tokens are resident
	// west: 0 of 360 tokens are resident
}

func BenchmarkMatch(b *testing.B) {
	const live, k = 10_000, 15
	sets := contexts(live+1000, k)
	for _, policy := range []string{"best", "paper"} {
		for _, replicas := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("%s/k=%d/live=%d/replicas=%d", policy, k, live, replicas), func(b *testing.B) {
				p := newPilot(b, contextpilot.Config{Policy: policy})
				names := names("", replicas)
				for i := range live { // in all of them together
					p.Plan(contextpilot.Request{Scope: contextpilot.Scope{Replica: names[i%replicas]}, Blocks: sets[i]})
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					p.MatchReplicas(contextpilot.Request{Blocks: sets[live+i%1000]}, names...)
					i++
				}
			})
		}
	}
}
