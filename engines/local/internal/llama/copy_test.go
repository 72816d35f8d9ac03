package llama_test

import (
	"math"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// TestSpansThatSharePages: tokens in any number of spans of one call, with gaps that were computed before, are as in one piece.
func TestSpansThatSharePages(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			_, m := modeltest.Tiny(t, shape)
			const n = 75
			tokens := randomTokens(n, m.Vocab, 5)
			whole := pages(t, m, n)
			want := slices.Clone(modeltest.NewWorker(t, m, 1).Forward([]llama.Span{{Tokens: tokens, Pages: whole, Logits: 1}}))
			memory := pages(t, m, n)
			w := modeltest.NewWorker(t, m, 3)
			first := []llama.Span{
				{Tokens: tokens[:10], Pages: memory},
				{Tokens: tokens[10:33], Position: 10, Pages: memory},
				{Tokens: tokens[33:60], Position: 33, Pages: memory},
			}
			slices.Reverse(first)
			w.Forward(first)
			got := w.Forward([]llama.Span{
				{Tokens: tokens[3:20], Position: 3, Pages: memory}, {Tokens: tokens[40:41], Position: 40, Pages: memory}, // once more
				{Tokens: tokens[60:], Position: 60, Pages: memory, Logits: 1},
			})
			if !slices.Equal(got, want) {
				t.Error("other logits")
			}
			check(t, m, memory, whole, 0, n, 0)
		})
	}
}

// check compares the keys and values of tokens from to to-1.
func check(t *testing.T, m *llama.Model, got, want []gpu.Page, from, to int, tolerance float64) {
	t.Helper()
	h := m.Shape()
	for at := from; at < to; at++ {
		for layer := range m.Layers {
			g, w := m.Page(got[at/llama.PageTokens].Host, layer), m.Page(want[at/llama.PageTokens].Host, layer)
			for i := range h.KV * h.Dim {
				key := i*llama.PageTokens + at%llama.PageTokens
				value := (i/h.Dim*llama.PageTokens+at%llama.PageTokens)*h.Dim + i%h.Dim
				if !near(g.Keys[key], w.Keys[key], tolerance) || !near(g.Values[value], w.Values[value], tolerance) {
					t.Fatalf(
						"token %d, layer %d: key %g, want %g; value %g, want %g",
						at,
						layer,
						g.Keys[key],
						w.Keys[key],
						g.Values[value],
						w.Values[value],
					)
				}
			}
		}
	}
}

// near is false also if one is not a number.
func near(a, b float32, tolerance float64) bool {
	return a == b || math.Abs(float64(a)-float64(b)) <= tolerance*max(1, math.Abs(float64(b)))
}

// TestCopy: tokens that see only each other are the same at any position, moved or computed there, and a move back changes nothing.
func TestCopy(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			_, m := modeltest.Tiny(t, shape)
			const n, at = 40, 53
			tokens := randomTokens(n, m.Vocab, 6)
			alone, moved, back := pages(t, m, n), pages(t, m, at+n), pages(t, m, n)
			w := modeltest.NewWorker(t, m, 1)
			w.Forward([]llama.Span{{Tokens: tokens, Pages: alone}})
			w.Copy(moved, at, alone, 0, n)
			w.Copy(back, 0, moved, at, n)
			check(t, m, back, alone, 0, n, 1e-6)
			same := pages(t, m, n)
			w.Copy(same, 0, alone, 0, n)
			check(t, m, same, alone, 0, n, 0)
			// In the first layer a token's keys and values depend on the token and its position alone.
			there := pages(t, m, at+n)
			w.Forward([]llama.Span{{Tokens: append(randomTokens(at, m.Vocab, 7), tokens...), Pages: there}})
			h := m.Shape()
			for i := at; i < at+n; i++ {
				g, want := m.Page(moved[i/llama.PageTokens].Host, 0), m.Page(there[i/llama.PageTokens].Host, 0)
				for d := range h.KV * h.Dim {
					if x, y := g.Keys[d*llama.PageTokens+i%llama.PageTokens], want.Keys[d*llama.PageTokens+i%llama.PageTokens]; !near(x, y, 1e-5) {
						t.Fatalf("token %d: %g in the first layer, want %g", i, x, y)
					}
				}
			}
		})
	}
}

// TestProbes: every layer is looked at, the last one too, whether logits are wanted or not; and the logits stay.
func TestProbes(t *testing.T) {
	_, m := modeltest.Tiny(t, shapes["llama"])
	const n, rows = 50, 9
	tokens := randomTokens(n+rows, m.Vocab, 8)
	memory := pages(t, m, n+rows)
	w := modeltest.NewWorker(t, m, 2)
	want := slices.Clone(w.Forward([]llama.Span{{Tokens: tokens, Pages: memory, Logits: 2}}))
	h := m.Shape()
	for _, logits := range []int{0, 2} {
		probes := make([]*compute.Probe, m.Layers)
		for i := range probes {
			probes[i] = compute.NewProbe(h, n+rows)
		}
		got := w.Forward([]llama.Span{{Tokens: tokens[n:], Position: n, Pages: memory, Logits: logits, Probes: probes}})
		if len(got) != logits*m.Vocab || logits > 0 && !slices.Equal(got, want) {
			t.Errorf("%d logits, or other ones", len(got))
		}
		for layer, p := range probes {
			for head := range h.KV {
				sum := float32(0)
				for _, x := range p.Sums[head*p.Tokens:][:p.Tokens] {
					sum += x
				}
				if want := float32(rows * h.Query / h.KV); !near(sum, want, 1e-4) {
					t.Errorf("layer %d, head %d: weights add up to %g, want %g", layer, head, sum, want)
				}
			}
		}
	}
}
