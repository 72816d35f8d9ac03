package local_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
)

func TestOverlap(t *testing.T) {
	rising, falling := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []float32{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	for _, c := range []struct {
		name  string
		a     local.Attention
		share float64
		want  float64
	}{
		{"the same", local.Attention{Question: rising, Answer: rising}, 0.2, 1},
		{"the same in other numbers", local.Attention{Question: rising, Answer: []float32{0, 0, 0, 0, 0, 0, 0, 0, 0.5, 90}}, 0.2, 1},
		{"the opposite", local.Attention{Question: rising, Answer: falling}, 0.2, 0},
		{"the opposite, of most", local.Attention{Question: rising, Answer: falling}, 0.8, 0.75},
		{"part of a token counts", local.Attention{Question: rising, Answer: falling}, 0.51, 2.0 / 6},
		{"equal tokens", local.Attention{Question: make([]float32, 10), Answer: falling}, 0.3, 1},
		{"all", local.Attention{Question: rising, Answer: falling}, 1, 1},
		{"none", local.Attention{Question: rising, Answer: falling}, 0, 1},
	} {
		if got := c.a.Overlap(c.share); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestAttention: each row's weights are 1 in each layer and head, and blocks get most of that and not all; the cache stays as
// it is; steps and threads change nothing.
func TestAttention(t *testing.T) {
	req := blockRequest("a", 1, 2, 3)
	e := open(t, 200, local.Config{Step: 128, Threads: 1})
	got, err := e.Attention(t.Context(), req, "one two")
	if err != nil {
		t.Fatal(err)
	}
	blocked := req
	blocked.Extra = extra("reuse", "blocks")
	tokens, blocks, err := e.TokenizeBlocks(blocked)
	if err != nil {
		t.Fatal(err)
	}
	within := 0
	for _, b := range blocks {
		within += b.To - b.From
	}
	if len(got.Question) != within || len(got.Answer) != within {
		t.Fatalf("%d and %d tokens, the blocks have %d", len(got.Question), len(got.Answer), within)
	}
	score, err := e.Score(t.Context(), req, "one two", nil)
	if err != nil || score.Cached != 0 {
		t.Errorf("%d tokens were in the cache, %v", score.Cached, err)
	}
	const weights = 2 * 4 // of a row, in the tiny model's layers and heads
	for _, c := range []struct {
		name string
		sums []float32
		rows int
	}{{"question", got.Question, len(tokens) - blocks[2].To}, {"answer", got.Answer, len(score.Tokens)}} {
		all := float64(weights * c.rows)
		if s := sum(c.sums); s >= all || s < all/2 {
			t.Errorf("the %s gives the blocks %.3f of %.0f", c.name, s, all)
		}
	}
	other := open(t, 200, local.Config{Step: 16, Threads: 3})
	again, err := other.Attention(t.Context(), req, "one two")
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Question {
		if got.Question[i] != again.Question[i] || got.Answer[i] != again.Answer[i] {
			t.Fatalf("token %d: %v and %v, in other steps %v and %v", i, got.Question[i], got.Answer[i], again.Question[i], again.Answer[i])
		}
	}
}

func sum(all []float32) (s float64) {
	for _, x := range all {
		s += float64(x)
	}
	return s
}

func TestAttentionErrors(t *testing.T) {
	e := open(t, 200, local.Config{})
	none, last := blockRequest("none", 1), blockRequest("last", 1)
	none.Blocks = nil
	short := ask("short", "a b c. What?", 1)
	short.Blocks = []engines.BlockSpan{{From: 0, To: 6}}
	for name, req := range map[string]engines.Request{"no blocks": none, "short blocks": short} {
		if _, err := e.Attention(t.Context(), req, "one"); !errors.Is(err, engines.ErrRefused) || !strings.Contains(err.Error(), "blocks [") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := e.Attention(t.Context(), last, ""); !errors.Is(err, engines.ErrRefused) {
		t.Errorf("no answer: %v", err)
	}
}
