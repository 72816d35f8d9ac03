package contextpilot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// prose is a block of so many tokens whose first sentence names it.
func prose(id string, tokens int) contextpilot.Block {
	text := "This is about " + id + "."
	for i := 0; contextpilot.Estimate.Count(contextpilot.Estimate{}, text) < tokens; i++ {
		text += fmt.Sprintf(" Sentence %d says more.", i)
	}
	return contextpilot.Block{ID: id, Text: text, Tokens: tokens}
}

// ending is what stands behind the blocks of a prompt.
func ending(p contextpilot.Plan) string { return strings.TrimPrefix(p.Prompt("Why?"), p.Context()) }

const (
	echoOfX  = "<doc x again>\nThis is about x.\n</doc>\nWhy?"
	question = "Why?"
)

// Where the best block has gone to the middle, it goes last if that costs less than to show it once more, else it is shown once more.
func TestTop(t *testing.T) {
	list := strings.Fields
	for _, c := range []struct {
		name   string
		top    contextpilot.Top
		before []string // blocks of an earlier request
		ask    []string
		sent   string
		ending string
	}{
		{"left", contextpilot.TopAnywhere, []string{"a", "x", "b"}, []string{"x", "b", "a"}, "a x b", question},
		{"moved", contextpilot.TopMoves, []string{"a", "x", "b"}, []string{"x", "b", "a"}, "a b x", question},
		{"echoed", contextpilot.TopEchoes, []string{"a", "x", "b"}, []string{"x", "b", "a"}, "a x b", echoOfX},
		{"by default", contextpilot.TopAuto, list("a x b"), list("x b a"), "a x b", echoOfX},
		{"resident: an echo costs less", contextpilot.TopNear, []string{"a", "x", "b"}, []string{"x", "b", "a"}, "a x b", echoOfX},
		{"not resident: to move costs nothing", contextpilot.TopNear, list("a b c"), list("x b a y"), "a b y x", question},
		{"last already", contextpilot.TopNear, []string{"a", "b", "x"}, []string{"x", "b", "a"}, "a b x", question},
		{"first, as retrieved", contextpilot.TopNear, []string{"x", "b"}, []string{"x", "a", "b"}, "x b a", question},
		{"first, but to be echoed", contextpilot.TopEchoes, []string{"x", "b"}, []string{"x", "a", "b"}, "x b a", echoOfX},
		{"alone", contextpilot.TopNear, nil, []string{"x"}, "x", question},
	} {
		p := newPilot(t, contextpilot.Config{Top: c.top, EchoTokens: 5, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}})
		request := func(ids []string) contextpilot.Request {
			r := contextpilot.Request{Query: "Why?"}
			for _, id := range ids {
				r.Blocks = append(r.Blocks, prose(id, 100))
			}
			return r
		}
		if c.before != nil {
			first := request(c.before)
			first.Fixed = true
			p.Plan(first)
		}
		plan := p.Plan(request(c.ask))
		equal(t, c.name, c.sent, sent(plan))
		equal(t, c.name+": behind the blocks", c.ending, ending(plan))
	}
}

// whole plans requests one after the other with TopNear and echoes of whole blocks, and returns the last plan.
func whole(t *testing.T, requests ...[]contextpilot.Block) contextpilot.Plan {
	t.Helper()
	p := newPilot(t, contextpilot.Config{
		Top: contextpilot.TopNear, EchoTokens: contextpilot.EchoWhole, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}, BlockSize: 1,
	})
	for i, blocks := range requests {
		req := contextpilot.Request{Query: "Why?", Blocks: blocks, Fixed: i < len(requests)-1}
		if plan := p.Plan(req); i == len(requests)-1 {
			return plan
		}
	}
	panic("no request")
}

// The cheapest of three: an echo, moving the block, retrieval order.
func TestTopCosts(t *testing.T) {
	b := func(id string, tokens int) contextpilot.Block { return prose(id, tokens) }
	list := func(blocks ...contextpilot.Block) []contextpilot.Block { return blocks }
	for _, c := range []struct {
		name, sent string
		echo       bool
		plan       contextpilot.Plan
	}{
		{"what stands behind is worth more than an echo", "a x c", true, whole(t,
			list(b("a", 100), b("x", 100), b("c", 300)), list(b("x", 100), b("a", 100), b("c", 300)))},
		{"what stands behind is worth less", "a c x", false, whole(t,
			list(b("a", 100), b("x", 100), b("c", 1)), list(b("x", 100), b("a", 100), b("c", 1)))},
		{"retrieval order finds as much", "x a b", false, whole(t,
			list(b("x", 100), b("y", 100)), list(b("a", 100), b("x", 100), b("z", 100)), list(b("x", 100), b("a", 100), b("b", 100)))},
	} {
		equal(t, c.name, c.sent, sent(c.plan))
		equal(t, c.name+": echo", c.echo, c.plan.Echo != nil)
	}
}

// If nothing is resident, there is nothing that retrieval order finds: what the policy arranged for later requests stays.
func TestTopOfNothingResident(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Top: contextpilot.TopNear, BlockSize: 1})
	p.Plan(contextpilot.Request{ID: "other", Blocks: []contextpilot.Block{prose("o", 50)}, HeadTokens: 20})
	for i, ids := range []string{"ab", "ab", "xabcdefg"} {
		req := contextpilot.Request{ID: fmt.Sprint("gone", i), HeadTokens: 20}
		for _, id := range ids {
			req.Blocks = append(req.Blocks, prose(string(id), 50))
		}
		p.Plan(req)
	}
	for i := range 3 {
		p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: fmt.Sprint("gone", i)})
	}
	ask := contextpilot.Request{HeadTokens: 20}
	for id := range strings.FieldsSeq("x y a b q r s t") {
		ask.Blocks = append(ask.Blocks, prose(id, 50))
	}
	equal(t, "sent", "a b y q r s t x", sent(p.Plan(ask)))
}

// Limits bound where the block may go.
func TestTopWithinLimits(t *testing.T) {
	ask := contextpilot.Request{Blocks: []contextpilot.Block{prose("x", 50), prose("a", 50), prose("b", 50)}}
	group := func(contextpilot.Block) (string, int) { return "", 0 }
	for name, limits := range map[string]contextpilot.Limits{
		"pin": {Pin: 1}, "displacement": {MaxDisplacement: 1}, "group": {Group: group},
	} {
		p := newPilot(t, contextpilot.Config{Top: contextpilot.TopMoves, Limits: limits})
		equal(t, name, "x a b", sent(p.Plan(ask)))
	}
	p := newPilot(t, contextpilot.Config{Top: contextpilot.TopMoves, Limits: contextpilot.Limits{MaxDisplacement: 2}})
	equal(t, "far enough", "a b x", sent(p.Plan(ask)))
}

// The policy `retrieval` and requests whose order is fixed stay as they are.
func TestTopOfOrdersThatStay(t *testing.T) {
	ask := contextpilot.Request{Blocks: []contextpilot.Block{prose("x", 9), prose("a", 9), prose("b", 9)}, Prior: []string{"Hello."}}
	p := newPilot(t, contextpilot.Config{Policy: "retrieval", Top: contextpilot.TopNear})
	equal(t, "retrieval", "x a b", sent(p.Plan(ask)))
	ask.Fixed = true
	p = newPilot(t, contextpilot.Config{Top: contextpilot.TopMoves})
	equal(t, "fixed", "x a b", sent(p.Plan(ask)))
}

// Behind a conversation nothing is shared: the best block goes last at no cost.
func TestTopBehindAHistory(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Top: contextpilot.TopNear})
	one := p.Plan(contextpilot.Request{Blocks: []contextpilot.Block{prose("a", 50)}})
	two := p.Plan(contextpilot.Request{
		Blocks: []contextpilot.Block{prose("x", 50), prose("b", 50), prose("a", 50)}, Prior: []string{one.Prompt("Why?"), "So."}, Behind: one.End,
	})
	equal(t, "sent", "b x", sent(two))
	equal(t, "references", "a", refs(two))
}

// An echo counts: in Budget, in Room, in what the next request finds, and in the explanation.
func TestEchoCounts(t *testing.T) {
	cfg := contextpilot.Config{Top: contextpilot.TopEchoes, EchoTokens: 5, BlockSize: 1}
	ask := contextpilot.Request{Query: "Why?", Blocks: []contextpilot.Block{prose("x", 100), prose("a", 100), prose("b", 100)}}
	for name, c := range map[string]struct {
		change func(*contextpilot.Request)
		echo   bool
	}{
		"no limit":      {func(*contextpilot.Request) {}, true},
		"budget":        {func(r *contextpilot.Request) { r.Budget = 320 }, true},
		"small budget":  {func(r *contextpilot.Request) { r.Budget = 305 }, false},
		"room":          {func(r *contextpilot.Request) { r.Room = 330 }, true},
		"small room":    {func(r *contextpilot.Request) { r.Room = 305 }, false},
		"cannot show":   {func(r *contextpilot.Request) { r.NoEcho = true }, false},
		"without texts": {func(r *contextpilot.Request) { r.Blocks[0].Text = " " }, false},
	} {
		r := ask
		r.Blocks = append([]contextpilot.Block(nil), ask.Blocks...)
		c.change(&r)
		if plan := newPilot(t, cfg).Plan(r); (plan.Echo != nil) != c.echo || len(plan.Items) != 3 {
			t.Errorf("%s: echo %+v of %d blocks", name, plan.Echo, len(plan.Items))
		}
	}
	p := newPilot(t, cfg)
	plan := p.Plan(ask)
	if want := contextpilot.Estimate.Count(contextpilot.Estimate{}, plan.RenderEcho()); plan.Echo.Tokens != want {
		t.Errorf("%d tokens, want %d", plan.Echo.Tokens, want)
	}
	if text := plan.Explain(); !strings.Contains(text, "shown once more next to the question: 1:x, ") {
		t.Error(text)
	}
	again := p.Plan(ask)
	if got, want := again.Prefix.Tokens, 300; got < want {
		t.Errorf("the same request again finds %d tokens", got)
	}
}

// The note about the order gets what room the echo has left.
func TestEchoAndNoteInOneRoom(t *testing.T) {
	p := newPilot(t, contextpilot.Config{
		Policy: "sorted", Top: contextpilot.TopEchoes, EchoTokens: 5, Notes: contextpilot.Notes{AlwaysHint: true},
	})
	ask := contextpilot.Request{Query: "Why?", Blocks: []contextpilot.Block{prose("x", 100), prose("a", 100), prose("y", 100)}}
	for room, note := range map[int]bool{330: true, 315: false} {
		ask.Room = room
		if plan := p.Plan(ask); plan.Echo == nil || (plan.Hint != "") != note {
			t.Errorf("room of %d: echo %+v, note %q", room, plan.Echo, plan.Hint)
		}
	}
}

// A batch is planned for what its requests share with those that run beside them: the block stays where both share it.
func TestTopInABatch(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Top: contextpilot.TopNear, EchoTokens: 5, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}})
	reqs := []contextpilot.Request{{Query: "Why?"}, {Query: "Why?"}}
	for _, id := range []string{"x", "a", "y", "c"} {
		reqs[0].Blocks = append(reqs[0].Blocks, prose(id, 100))
	}
	for _, id := range []string{"y", "x", "a", "d"} {
		reqs[1].Blocks = append(reqs[1].Blocks, prose(id, 100))
	}
	batch, err := p.PlanBatch(context.Background(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	shared := 0
	for shared < 4 && batch.Plans[0].RenderItem(shared) == batch.Plans[1].RenderItem(shared) {
		shared++
	}
	equal(t, "shared blocks", 3, shared)
	for i, plan := range batch.Plans {
		first := plan.Block(plan.Items[0].Index).ID
		if plan.Echo == nil && first != plan.Block(0).ID {
			t.Errorf("request %d: the best block is neither first nor shown once more: %s", i, sent(plan))
		}
	}
}

func TestBadTop(t *testing.T) {
	for _, cfg := range []contextpilot.Config{{Top: contextpilot.TopNear + 1}, {EchoTokens: -2}} {
		if _, err := contextpilot.New(cfg); !errors.Is(err, contextpilot.ErrBadConfig) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// Replicas with the same cache match alike, also where the room holds one echo only.
func TestEchoOfReplicas(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Top: contextpilot.TopNear, EchoTokens: 5, BlockSize: 1})
	names := []string{"a", "b", "c"}
	blocks := func(ids ...string) (out []contextpilot.Block) {
		for _, id := range ids {
			out = append(out, prose(id, 100))
		}
		return out
	}
	ask := contextpilot.Request{Query: "Why?", Room: 450, Blocks: blocks("x", "a", "b")}
	for _, name := range append(names, "tried") {
		p.Plan(contextpilot.Request{Scope: contextpilot.Scope{Replica: name}, Blocks: blocks("a", "x", "b"), Fixed: true})
	}
	ask.Scope.Replica = "tried"
	for try := ask; p.Plan(try).Echo != nil; try.Room-- {
		ask.Room = try.Room // at last the smallest room with an echo
	}
	matches := p.MatchReplicas(ask, names...)
	for i, name := range names {
		ask.Scope.Replica = name
		plan := p.Plan(ask)
		if plan.Echo == nil || plan.Prefix.Tokens != matches[i].Tokens || matches[i] != matches[0] {
			t.Errorf("replica %s: matched %+v, planned %s", name, matches[i], plan.Explain())
		}
	}
}

// A request of a batch that continues a conversation is planned as alone.
func TestTopOfABatchBehindAHistory(t *testing.T) {
	ask := contextpilot.Request{ID: "two", Blocks: []contextpilot.Block{prose("x", 50), prose("b", 50)}, Prior: []string{"Hello.", "So."}}
	cfg := contextpilot.Config{Top: contextpilot.TopNear}
	batch, err := newPilot(t, cfg).PlanBatch(context.Background(), []contextpilot.Request{ask})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "in a batch", "b x", sent(batch.Plans[0]))
	equal(t, "alone", "b x", sent(newPilot(t, cfg).Plan(ask)))
}

// Conversations have an echo of a block in each turn at most. More are not ours: the block is sent again.
func TestManyEchoes(t *testing.T) {
	for echoes, references := range map[int]string{1: "a", 3000: ""} {
		p := newPilot(t, contextpilot.Config{})
		one := p.Plan(contextpilot.Request{Blocks: []contextpilot.Block{prose("a", 20)}})
		two := p.Plan(contextpilot.Request{
			Blocks: []contextpilot.Block{prose("a", 20)}, Behind: one.End,
			Prior: []string{one.Prompt("Why?"), strings.Repeat("<doc a again>\nabout a\n</doc>\n", echoes)},
		})
		equal(t, fmt.Sprint(echoes, " echoes"), references, refs(two))
	}
}

// counting counts its calls: each may be a request to an engine, and the scope is locked meanwhile.
type counting struct{ calls int }

func (c *counting) Count(text string) int {
	c.calls++
	return contextpilot.Estimate{}.Count(text)
}

// Long blocks with many sentences take few calls of the tokenizer.
func TestEchoCallsTheTokenizerRarely(t *testing.T) {
	count := &counting{}
	p := newPilot(t, contextpilot.Config{Top: contextpilot.TopEchoes, Tokenizer: count})
	text := strings.Repeat("It is so. ", 1600)
	plan := p.Plan(contextpilot.Request{Query: "Is it so?", Blocks: []contextpilot.Block{
		{ID: "a", Text: text, Tokens: 4000}, {ID: "b", Text: text + "b", Tokens: 4000}, {ID: "c", Text: text + "c", Tokens: 4000},
	}})
	p.Plan(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "x", Text: text, Tokens: 4000}, {ID: "a", Text: text, Tokens: 4000}}})
	if plan.Fault != nil || count.calls > 40 {
		t.Errorf("%d calls: %v", count.calls, plan.Fault)
	}
}
