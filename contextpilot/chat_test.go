package contextpilot_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// chat is a client as they are written: it keeps its messages, or the last few, and sends them with each turn.
type chat struct {
	pilot    *contextpilot.Pilot
	check    *checker
	session  string
	window   int // messages resent, 0: all
	messages []string
	turns    []past // of which the messages are, two each
	now      past   // where it goes on
	next     int
	refs     int
}

// past is a turn with what a model knows behind it.
type past struct {
	plan  contextpilot.Plan
	end   contextpilot.Position
	turn  int
	shown map[string]int // labels of blocks that reached the engine in full, with the turn
}

func newChat(t *rapid.T, p *contextpilot.Pilot, cfg contextpilot.Config, session string) *chat {
	return &chat{pilot: p, check: newChecker(cfg), session: session, now: past{shown: map[string]int{}}, window: rapid.SampledFrom([]int{
		0,
		0, 2, 4,
	}).Draw(t, "window")}
}

func (c *chat) prior() []string {
	if c.window == 0 {
		return slices.Clone(c.messages)
	}
	return slices.Clone(c.messages[max(0, len(c.messages)-c.window):])
}

// plan returns a plan, and what was shown up to there and is in the messages.
func (c *chat) plan(t *rapid.T, id string, bs []contextpilot.Block) (p contextpilot.Plan, shown map[string]int) {
	req := contextpilot.Request{ID: id, Session: c.session, Blocks: bs, Query: "question", Prior: c.prior(), Behind: c.now.end}
	p = c.pilot.Plan(req)
	if err := c.check.check(req, p); err != nil {
		t.Fatalf("%v\nmessages %q\n%s", err, req.Prior, p.Explain())
	}
	if p.Turn != c.now.turn+1 {
		t.Fatalf("turn %d, want %d", p.Turn, c.now.turn+1)
	}
	return p, c.complete(t, req, p)
}

// complete: a block is a reference exactly if an earlier turn showed it and the messages did ever since.
func (c *chat) complete(t *rapid.T, req contextpilot.Request, p contextpilot.Plan) (shown map[string]int) {
	visible := map[string]bool{}
	for _, m := range req.Prior {
		for _, b := range readMessage(m) {
			visible[b.Label] = true
		}
	}
	shown = maps.Clone(c.now.shown)
	maps.DeleteFunc(shown, func(label string, _ int) bool { return !visible[label] }) // forgotten, even if it comes back
	for _, it := range p.Items {
		label := it.Label
		turn, was := shown[label]
		want := was && c.check.dedup != contextpilot.DedupOff
		if got := it.Ref != nil; got != want {
			t.Fatalf("block %q: reference %v, want %v (shown in turn %d)\n%s", label, got, want, turn, p.Explain())
		}
		if it.Ref == nil {
			continue
		}
		c.refs++
		// A block that left the window and was sent again was shown last in the later turn.
		if it.Ref.Turn != turn {
			t.Fatalf("block %q: reference to turn %d, want %d", label, it.Ref.Turn, turn)
		}
	}
	return shown
}

// answered keeps the turn.
func (c *chat) answered(t *rapid.T, p contextpilot.Plan, shown map[string]int) {
	show(shown, &p)
	c.now = past{plan: p, end: p.End, turn: p.Turn, shown: shown}
	if rapid.Bool().Draw(t, "counted") {
		c.now.end = p.End.Answered(9)
	}
	c.turns = append(c.turns, c.now)
	c.messages = append(c.messages, p.Prompt("question"), fmt.Sprint("answer ", p.RequestID))
	if rapid.Bool().Draw(t, "reported") {
		c.pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: p.RequestID, Tokens: p.Prefix.Tokens, Output: 9})
	}
}

// show adds what a plan sends in full.
func show(shown map[string]int, p *contextpilot.Plan) {
	for _, it := range p.Items {
		if it.Ref == nil {
			shown[it.Label] = p.Turn
		}
	}
}

func (c *chat) Turn(t *rapid.T) {
	c.next++
	id := fmt.Sprint(c.session, c.next)
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), rapid.SampledFrom([]int{0, 2, 3}).Draw(t,
		"least"), 4, rapid.ID).Draw(t, "blocks")
	p, shown := c.plan(t, id, blocks(ids...))
	refused := func() {
		if rapid.Bool().Draw(t, "taken back") {
			c.pilot.TakeBack(&p)
		} else {
			c.pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: id})
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "outcome") {
	case 0: // the engine refused it, and the user asks something else
		refused()
	case 1: // tried again under its ID
		p, shown = c.plan(t, id, blocks(ids...))
		c.answered(t, p, shown)
	case 2: // tried again under another ID
		refused()
		p, shown = c.plan(t, id+"'", blocks(ids...))
		c.answered(t, p, shown)
	default:
		c.answered(t, p, shown)
	}
}

// Evict: what the engine's cache does must not change what is said.
func (c *chat) Evict(t *rapid.T) {
	if c.next == 0 {
		return
	}
	id := fmt.Sprint(c.session, rapid.IntRange(1, c.next).Draw(t, "which"))
	var ev contextpilot.Event
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		ev = contextpilot.Event{Kind: contextpilot.Gone, Request: id}
	case 1:
		ev = contextpilot.Event{Kind: contextpilot.Shrunk, Request: id, Tokens: rapid.IntRange(0, 100).Draw(t, "tokens")}
	case 2:
		ev = contextpilot.Event{Kind: contextpilot.Cleared}
	}
	c.pilot.Observe(ev)
}

// Edit: the user deletes a question and its answer, or the last one to ask it again. The client goes on behind what it had, or knows
// what to do about it.
func (c *chat) Edit(t *rapid.T) {
	n := len(c.turns)
	if n == 0 || rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		return
	}
	i := rapid.IntRange(0, n-1).Draw(t, "turn")
	c.messages, c.turns = slices.Delete(c.messages, 2*i, 2*i+2), slices.Delete(c.turns, i, i+1)
	if rapid.Bool().Draw(t, "unaware") {
		return
	}
	c.now = past{shown: map[string]int{}}
	if i > 0 {
		c.now = c.turns[i-1]
	}
	for j := i; j < len(c.turns); j++ {
		x := &c.turns[j]
		x.end = c.pilot.Behind(c.now.end, &x.plan, c.messages[2*j])
		if rapid.Bool().Draw(t, "counted") {
			x.end = x.end.Answered(9)
		} else {
			x.end = c.pilot.Behind(x.end, nil, c.messages[2*j+1])
		}
		x.turn = max(c.now.turn, x.plan.Turn)
		x.shown = maps.Clone(c.now.shown)
		show(x.shown, &x.plan)
		c.now = *x
	}
}

func TestChat(t *testing.T) {
	total, runs := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		cfg := contextpilot.Config{
			Policy: rapid.SampledFrom(contextpilot.PolicyNames()).Draw(t, "policy"),
			Dedup: rapid.SampledFrom([]contextpilot.Dedup{
				contextpilot.DedupContent, contextpilot.DedupID, contextpilot.DedupContent, contextpilot.DedupID, contextpilot.DedupOff,
			}).Draw(t, "dedup"),
			Capacity: rapid.SampledFrom([]int{0, 200}).Draw(t, "capacity"),
		}
		p, err := contextpilot.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		a, b := newChat(t, p, cfg, "a"), newChat(t, p, cfg, "b")
		t.Repeat(map[string]func(*rapid.T){
			"turn a": a.Turn, "turn b": b.Turn, "turn of a again": a.Turn, "one more of a": a.Turn, "turn of b " +
				"again": b.Turn, "evict": a.Evict, "edit": a.Edit,
			"": func(t *rapid.T) {
				if err := p.Check(); err != nil {
					t.Fatal(err)
				}
			},
		})
		total += a.refs + b.refs
	})
	if total < runs {
		t.Errorf("%d references in %d runs: the model does not test them", total, runs)
	}
}

// The example of the model, step by step: out of the window means sent again.
func TestWindow(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	var at contextpilot.Position
	ask := func(id string, prior []string, ids ...string) contextpilot.Plan {
		plan := p.Plan(contextpilot.Request{ID: id, Session: "s", Blocks: blocks(ids...), Prior: prior, Behind: at})
		at = plan.End
		return plan
	}
	one := ask("1", nil, "a", "b")
	messages := []string{one.Prompt("q"), "answer"}
	two := ask("2", messages, "b", "c")
	equal(t, "turn 2", "c; b", sent(two)+"; "+refs(two))
	messages = append(messages, two.Prompt("q"), "answer")
	three := ask("3", messages[2:], "a", "b", "c")
	equal(t, "turn 3, without the first turn's messages", "b a; c", sent(three)+"; "+refs(three))
	four := ask("4", nil, "a", "c")
	equal(t, "turn 4, alone", "a c; ", sent(four)+"; "+refs(four))
	behind := at
	five := ask("5", append(messages, three.Prompt("q")), "a", "b", "c")
	equal(t, "turn 5: all is back, but only turn 4 is remembered", 5, five.Turn)
	if err := newChecker(contextpilot.Config{}).references(contextpilot.Request{
		Session: "s", Blocks: blocks("a", "b", "c"), Prior: append(messages, three.Prompt("q")), Behind: behind,
	}, five); err != nil {
		t.Error(err)
	}
}
