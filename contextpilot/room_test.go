package contextpilot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// exact counts as the simulator does.
type exact struct{}

func (exact) Count(text string) int { return tokens.Count(text) }

func leftOut(p contextpilot.Plan) (out []string) {
	for _, l := range p.LeftOut {
		out = append(out, fmt.Sprint(p.Block(l.Index).ID, " ", l.Reason))
	}
	return out
}

// checkRoom: the turn's message fits, what is left out is named, and is of the lowest rank of its size or smaller.
func checkRoom(req contextpilot.Request, p contextpilot.Plan) error {
	if n := tokens.Count(p.Prompt(req.Query)); req.Room > 0 && n > max(req.Room, tokens.Count(req.Query)) {
		return fmt.Errorf("%d tokens in a room of %d:\n%s", n, req.Room, p.Explain())
	}
	if len(p.Items)+len(p.LeftOut) != len(req.Blocks) {
		return fmt.Errorf("%d sent and %d left out of %d:\n%s", len(p.Items), len(p.LeftOut), len(req.Blocks), p.Explain())
	}
	if req.Room < 0 && len(p.Items) > 0 {
		return fmt.Errorf("no room, but\n%s", p.Explain())
	}
	for _, l := range p.LeftOut {
		if l.Reason != contextpilot.OverWindow {
			continue
		}
		for _, it := range p.Items {
			if it.Index > l.Index && it.Ref == nil && tokens.Count(req.Blocks[it.Index].Text) >= tokens.Count(req.Blocks[l.Index].Text) {
				return fmt.Errorf("rank %d is left out, but rank %d of the same length is sent:\n%s", l.Index+1, it.Index+1, p.Explain())
			}
		}
	}
	return nil
}

// Whatever is asked, retrieved and noted, and whichever stage fails, the turn fits its room.
func TestRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := contextpilot.New(contextpilot.Config{
			Tokenizer: exact{}, Policy: rapid.SampledFrom(contextpilot.PolicyNames()).Draw(t, "policy"),
			Top:        contextpilot.Top(rapid.IntRange(0, int(contextpilot.TopNear)).Draw(t, "top")),
			EchoTokens: rapid.SampledFrom([]int{0, 2, contextpilot.EchoWhole}).Draw(t, "echo"),
			Notes: contextpilot.Notes{
				AlwaysHint: rapid.Bool().Draw(t, "always hint"), NoLocation: rapid.Bool().Draw(t, "no location"),
				AfterQuestion: rapid.Bool().Draw(t, "after question"), Hint: rapid.SampledFrom([]contextpilot.Hint{0, 1, 2, 3}).Draw(t, "hint"),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		fails := rapid.SampledFrom([]string{"", "", "index", "dedup", "reorder", "annotate"}).Draw(t, "fails")
		var prior []string
		var at contextpilot.Position
		for turn := range rapid.IntRange(1, 6).Draw(t, "turns") {
			p.SetInject(func(stage string) error {
				if stage == fails && turn%2 == 1 {
					return errors.New("injected")
				}
				return nil
			})
			req := contextpilot.Request{
				Session: "s", Query: strings.Repeat("why ", rapid.IntRange(1, 5).Draw(t, "question")), Prior: prior, Behind: at,
				Room: rapid.SampledFrom([]int{-1, 1, 30, 60, 90, 120, 200}).Draw(t, "room"), Budget: rapid.SampledFrom([]int{0, 0, 30}).Draw(t,
					"budget"),
			}
			for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 0, 6, rapid.ID).Draw(t, "ids") {
				req.Blocks = append(req.Blocks, contextpilot.Block{ID: id, Text: strings.Repeat("about "+id+" ", int(id[0]-'a')*4+1)})
			}
			plan := p.Plan(req)
			if rapid.IntRange(0, 3).Draw(t, "batch?") == 0 {
				batch, err := p.PlanBatch(context.Background(), []contextpilot.Request{req})
				if err != nil {
					t.Fatal(err)
				}
				plan = batch.Plans[0]
			}
			if err := checkRoom(req, plan); err != nil {
				t.Fatal(err)
			}
			prior, at = append(prior, plan.Prompt(req.Query), "Because."), plan.End
		}
	})
}

// brokenTokenizer fails at the first words of a text.
type brokenTokenizer struct{ at string }

func (b brokenTokenizer) Count(text string) int {
	if strings.Contains(text, b.at) {
		panic("cannot count")
	}
	return tokens.Count(text)
}

func TestRoomWithABrokenTokenizer(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Tokenizer: brokenTokenizer{"<doc"}})
	plan := p.Plan(contextpilot.Request{Query: "why?", Blocks: texts("a", "b", "c"), Room: 20})
	if plan.Fault == nil || len(plan.Items) == 0 || len(plan.LeftOut) == 0 {
		t.Error(plan.Explain())
	}
	if n := (contextpilot.Estimate{}).Count(plan.Prompt("why?")); n > 20 {
		t.Errorf("%d tokens", n)
	}
}

// The budget is for blocks sent in full; the room is for all, references too.
func TestRoomAndBudget(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Tokenizer: exact{}})
	first := p.Plan(contextpilot.Request{Session: "s", Query: "?", Blocks: texts("a", "b")})
	req := contextpilot.Request{
		Session: "s", Query: "?", Blocks: texts("c", "a", "d", "b"), Prior: []string{first.Prompt("?")},
		Behind: first.End,
	}
	for _, tt := range []struct {
		budget, room int
		want         []string
	}{
		{0, 0, nil},
		{4, 0, []string{"d over budget"}},
		{0, 200, nil},
		{0, 40, []string{"b over window"}},
		{0, 30, []string{"d over window", "b over window"}},
		{4, 45, []string{"d over budget"}},
		{4, 20, []string{"d over budget", "a over window", "b over window"}},
		{0, -1, []string{"c over window", "a over window", "d over window", "b over window"}},
	} {
		req.ID, req.Budget, req.Room = "again", tt.budget, tt.room
		plan := p.Plan(req)
		if got := leftOut(plan); !slices.Equal(got, tt.want) {
			t.Errorf("budget %d, room %d: left out %q, want %q (%d tokens)", tt.budget, tt.room, got, tt.want, tokens.Count(plan.Prompt("?")))
		}
	}
	if got := contextpilot.OverWindow.String(); got != "over window" {
		t.Error(got)
	}
}

// Without a room nothing is counted or allocated for it.
func TestNoRoomCostsNothing(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Tokenizer: exact{}})
	req := contextpilot.Request{ID: "r", Query: "why?", Blocks: texts("a", "b", "c")}
	plain := testing.AllocsPerRun(100, func() { p.Plan(req) })
	req.Room = 1000
	limited := testing.AllocsPerRun(100, func() { p.Plan(req) })
	if limited <= plain {
		t.Errorf("%v allocations with a room, %v without: nothing was rendered for it", limited, plain)
	}
	t.Logf("%v allocations, %v with a room", plain, limited)
}
