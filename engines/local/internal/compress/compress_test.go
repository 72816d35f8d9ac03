package compress_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/compress"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func tiny(t testing.TB, options tinymodel.Options) *compress.Model {
	t.Helper()
	_, m := modeltest.Tiny(t, options)
	c := testkit.Must(compress.New(m, 1))(t)
	t.Cleanup(c.Close)
	return c
}

func tokens(seed, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32((seed*31 + i*i*7 + i) % 300)
	}
	return out
}

var texts = compress.Texts{Prompt: tokens(5, 20), Notes: tokens(6, 45), Repeat: tokens(7, 9)}

func part(t testing.TB, m *compress.Model, head *compress.Part, tokens []int32) *compress.Part {
	t.Helper()
	return testkit.Must(m.Part(t.Context(), head, tokens, texts))(t)
}

func whole(t testing.TB, p *compress.Part) *compress.Kept {
	t.Helper()
	return testkit.Must(p.Whole())(t)
}

func keep(t testing.TB, p *compress.Part, scorer string, slots int) *compress.Kept {
	t.Helper()
	s, err := compress.ByName(scorer)
	if err != nil {
		t.Fatal(err)
	}
	scores, err := s.Score(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	k, err := p.Keep(scores, slots)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// eachScorer runs a test with each scorer.
func eachScorer(t *testing.T, test func(t *testing.T, scorer string)) {
	for _, name := range compress.Names() {
		t.Run(name, func(t *testing.T) { test(t, name) })
	}
}

// TestAll: a budget of all tokens is the cache as it was, bit for bit.
func TestAll(t *testing.T) {
	m := tiny(t, tinymodel.Options{Seed: 1})
	const n = 160
	plain := whole(t, part(t, m, nil, tokens(1, n)))
	eachScorer(t, func(t *testing.T, scorer string) {
		k := keep(t, part(t, m, nil, tokens(1, n)), scorer, n)
		for i, page := range k.Pages {
			page = modeltest.Placed(t, m.Model, page, k.Positions[i], i*llama.PageTokens)
			if !slices.Equal(page, plain.Pages[i]) || !slices.Equal(k.Positions[i], plain.Positions[i]) {
				t.Fatalf("page %d is another", i)
			}
		}
	})
}

// TestSteps: how many tokens are computed at a time changes nothing.
func TestSteps(t *testing.T) {
	m := tiny(t, tinymodel.Options{Seed: 2})
	eachScorer(t, func(t *testing.T, scorer string) {
		var want *compress.Kept
		for _, step := range []int{512, 16, 48} {
			m.Step = step
			got := keep(t, part(t, m, nil, tokens(2, 150)), scorer, 48)
			if want == nil {
				want = got
			}
			for i := range want.Pages {
				if !slices.Equal(got.Pages[i], want.Pages[i]) || !slices.Equal(got.Positions[i], want.Positions[i]) {
					t.Fatalf("steps of %d tokens give another page %d", step, i)
				}
			}
		}
	})
}

// TestPlaced: what is kept stands at positions 0 to k-1. In the first layer keys depend on the token and its position alone, so that they
// must be those of the same tokens computed there.
func TestPlaced(t *testing.T) {
	for name, options := range map[string]tinymodel.Options{
		"llama": {Seed: 3},
		"qwen3": {Architecture: "qwen3", Heads: 4, KVHeads: 1, HeadDim: 24, FFN: 96, Seed: 4},
	} {
		t.Run(name, func(t *testing.T) {
			m := tiny(t, options)
			all, h := tokens(3, 150), m.Shape()
			k := keep(t, part(t, m, nil, all), "reference", 48)
			differ := false
			for head := range h.KV {
				chosen := make([]int32, k.Slots())
				for slot := range chosen {
					at := func(layer int) uint32 {
						return k.Positions[slot/16][(layer*h.KV+head)*llama.PageTokens+slot%16]
					}
					chosen[slot] = all[at(0)]
					differ = differ || at(0) != at(1)
				}
				want := whole(t, part(t, m, nil, chosen))
				for i := range k.Pages {
					page := modeltest.Placed(t, m.Model, k.Pages[i], k.Positions[i], i*llama.PageTokens)
					got, want := m.Page(page, 0), m.Page(want.Pages[i], 0)
					from, to := head*h.Dim*llama.PageTokens, (head+1)*h.Dim*llama.PageTokens
					for j := from; j < to; j++ {
						if math.Abs(float64(got.Keys[j]-want.Keys[j])) > 1e-5 || got.Values[j] != want.Values[j] {
							t.Fatalf("page %d, number %d: key %g, want %g; value %g, want %g", i, j, got.Keys[j], want.Keys[j], got.Values[j], want.Values[j])
						}
					}
				}
			}
			if !differ {
				t.Error("all layers keep the same tokens")
			}
		})
	}
}

// TestFirst: every scorer keeps the first tokens of a text, and those that keep the last ones do.
func TestFirst(t *testing.T) {
	m := tiny(t, tinymodel.Options{Seed: 5})
	const n, slots = 150, 80
	eachScorer(t, func(t *testing.T, scorer string) {
		k := keep(t, part(t, m, nil, tokens(4, n)), scorer, slots)
		for head := range m.Layers * m.Shape().KV {
			first, last := k.Positions[0][head*16:][:16], k.Positions[len(k.Positions)-1][head*16:][:16]
			if !slices.Equal(first[:4], []uint32{0, 1, 2, 3}) {
				t.Fatalf("head %d begins with %v", head, first)
			}
			if (scorer == "recent" || scorer == "snapkv") && last[0] != n-16 {
				t.Fatalf("head %d ends with %v", head, last)
			}
		}
	})
}

// TestBehindAHead: a part depends on its head and itself, not on other parts, and keeps nothing of the head.
func TestBehindAHead(t *testing.T) {
	m := tiny(t, tinymodel.Options{Seed: 6})
	first, second := tokens(10, 32), tokens(11, 90)
	eachScorer(t, func(t *testing.T, scorer string) {
		head := part(t, m, nil, first)
		before := fmt.Sprint(whole(t, head))
		keep(t, part(t, m, head, tokens(12, 70)), scorer, 32)
		k := keep(t, part(t, m, head, second), scorer, 32)
		alone := keep(t, part(t, m, part(t, m, nil, first), second), scorer, 32)
		if !slices.EqualFunc(k.Pages, alone.Pages, slices.Equal) || !slices.EqualFunc(k.Positions, alone.Positions, slices.Equal) {
			t.Error("a part depends on one before it")
		}
		if slices.Min(k.Positions[0]) < 32 || fmt.Sprint(whole(t, head)) != before {
			t.Error("the head was changed, or kept")
		}
	})
}

func TestRefused(t *testing.T) {
	m := tiny(t, tinymodel.Options{Seed: 7})
	p := part(t, m, nil, tokens(1, 40))
	scorer, err := compress.ByName("recent")
	if err != nil {
		t.Fatal(err)
	}
	scores, err := scorer.Score(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, slots := range []int{0, -16, 20, 48} {
		if _, err := p.Keep(scores, slots); err == nil {
			t.Errorf("%d slots of 40 tokens are no error", slots)
		}
	}
	if _, err := compress.ByName("best"); err == nil {
		t.Error("a scorer that is not there is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Part(ctx, nil, tokens(1, 40), texts); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after an interruption", err)
	}
}

// TestContinue: what is written behind a part is what the model says, token by token.
func TestContinue(t *testing.T) {
	m := tiny(t, tinymodel.Options{Seed: 8})
	p := part(t, m, nil, tokens(1, 37))
	left := 20
	greedy := func(logits []float32) int32 {
		if left--; left < 0 {
			return -1
		}
		best := 0
		for i, x := range logits {
			if x > logits[best] {
				best = i
			}
		}
		return int32(best)
	}
	got, err := p.Continue(t.Context(), texts.Prompt, greedy)
	if err != nil || len(got) != 20 {
		t.Fatal(got, err)
	}
	for i := range got {
		left = 1
		more, err := p.Continue(t.Context(), slices.Concat(texts.Prompt, got[:i]), greedy)
		if err != nil || more[0] != got[i] {
			t.Fatalf("token %d is %d, want %d; error %v", i, more[0], got[i], err)
		}
	}
}
