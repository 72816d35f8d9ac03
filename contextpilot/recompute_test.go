package contextpilot_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// With Recompute a block that was sent anywhere counts as cached but for that part, the beginning of a prompt as without.
func TestRecompute(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "retrieval", Recompute: 0.25})
	plan := func(ids ...string) contextpilot.Plan { return p.Plan(contextpilot.Request{Blocks: blocks(ids...)}) }
	for _, x := range []struct {
		blocks       string
		beginning    int // blocks
		tokens, want int
	}{
		{"a b", 0, 0, 0},
		{"c b a", 0, 0, 24 + 24}, // in other places
		{"a b c", 2, 64, 24},     // c behind what is cached
		{"a d b", 1, 32, 24},
	} {
		got := plan(strings.Fields(x.blocks)...)
		equal(t, x.blocks, contextpilot.Prefix{Blocks: x.beginning, Tokens: x.tokens + x.want}, got.Prefix)
		if text := got.Explain(); strings.Contains(text, fmt.Sprintf("by themselves: %d tokens", x.want)) != (x.want > 0) {
			t.Errorf("%s: %s", x.blocks, text)
		}
	}
	p.Observe(contextpilot.Event{Kind: contextpilot.Cleared})
	if got := plan("b", "a").Prefix.Tokens; got != 0 {
		t.Errorf("after the cache was cleared %d tokens", got)
	}
	for _, wrong := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := contextpilot.New(contextpilot.Config{Recompute: wrong}); !errors.Is(err, contextpilot.ErrBadConfig) ||
			!strings.Contains(err.Error(), "Recompute") {
			t.Errorf("Recompute %v: %v", wrong, err)
		}
	}
}

// A turn finds the blocks of the turns before it, too, and Match says what Plan will.
func TestRecomputeOfEarlierTurns(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "retrieval", Recompute: 0.5})
	first := p.Plan(contextpilot.Request{ID: "1", Session: "s", Blocks: blocks("a", "b")})
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "1"}, contextpilot.Event{Kind: contextpilot.Shrunk, Request: "1"})
	req := contextpilot.Request{Session: "s", Blocks: blocks("c"), Prior: []string{first.Prompt("")}, Behind: first.End}
	match := p.Match(req)
	if got := p.Plan(req).Prefix.Tokens; got != 32 || match.Tokens != got {
		t.Errorf("%d tokens, Match says %d, want half of a and b", got, match.Tokens)
	}
}

// Against a model: what a pilot without Recompute expects, and of each block behind that which was sent before all but the part. No
// order changes.
func TestRecomputeAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		again := rapid.SampledFrom([]float64{0.2, 0.5, 1}).Draw(t, "recompute")
		policy := rapid.SampledFrom([]string{"retrieval", "best"}).Draw(t, "policy")
		plain, _ := contextpilot.New(contextpilot.Config{Policy: policy})
		with, _ := contextpilot.New(contextpilot.Config{Policy: policy, Recompute: again})
		sent := map[string]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			ids := rapid.SliceOfNDistinct(rapid.SampledFrom(strings.Fields("a b c d e f")), 1, 5, rapid.ID).Draw(t, "blocks")
			req := contextpilot.Request{Blocks: blocks(ids...)}
			a, b := plain.Plan(req), with.Plan(req)
			want := a.Prefix
			for i, it := range a.Items {
				if b.Items[i] != it {
					t.Fatalf("item %d is %v, without Recompute %v", i, b.Items[i], it)
				}
				if i >= a.Prefix.Blocks && sent[it.Label] {
					want.Tokens += int((1 - again) * 32)
				}
			}
			if b.Prefix != want {
				t.Fatalf("%v: %v, want %v", ids, b.Prefix, want)
			}
			for _, id := range ids {
				sent[id] = true
			}
		}
	})
}
