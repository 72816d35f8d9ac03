package llama_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// shapes are the architectures, each with something of its own.
var shapes = map[string]tinymodel.Options{
	"llama":   {Seed: 1},
	"llama 3": {RopeFactors: []float32{1, 1, 1, 2, 4, 8, 8, 8}, Untied: true, Seed: 2},
	"qwen2":   {Architecture: "qwen2", Seed: 3}, // biases
	"qwen3": {
		Architecture: "qwen3",
		Heads:        4,
		KVHeads:      1,
		HeadDim:      24,
		FFN:          96,
		Seed:         4,
	}, // norms of heads, which are wider than hidden together
}

func randomTokens(n, vocab int, seed uint64) []int32 {
	random := rand.New(rand.NewPCG(seed, 1))
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = random.Int32N(int32(vocab))
	}
	return tokens
}

// pages are for so many tokens. What is in them before is not a number: nothing may look at it.
func pages(t testing.TB, m *llama.Model, tokens int) []gpu.Page {
	t.Helper()
	return modeltest.Pages(t, m, tokens)
}

// A matrix that is used as it is, and one in blocks, in all architectures; the other formats are for runs without the race detector.
func TestForward(t *testing.T) {
	eachModel(t, []quant.Type{quant.F32, quant.Q4_1}, checkFormulas37)
}

func TestForwardIsExact(t *testing.T) {
	eachModel(t, []quant.Type{quant.F32, quant.Q4_1}, checkExact350)
}

func TestForwardInEveryFormat(t *testing.T) {
	testkit.NotUnderRace(t)
	var small []quant.Type
	for _, format := range quant.Types() {
		switch weights, _ := format.Block(); {
		case weights <= 32 && format != quant.F32 && format != quant.Q4_1: // those are tested above
			small = append(small, format)
		case weights > 32:
			t.Run(format.String(), func(t *testing.T) {
				file, m := modeltest.Tiny(t, tinymodel.Options{Type: format, Hidden: weights, Heads: 4, HeadDim: 64, FFN: weights, Seed: 5})
				checkFormulas(t, file, m, 7)
				checkExact(t, m, randomTokens(200, file.Vocab, 6), 200)
			})
		}
	}
	eachModel(t, small, func(t *testing.T, file *weights.Model, m *llama.Model) {
		checkFormulas37(t, file, m)
		checkExact350(t, file, m)
	})
}

// Rows of 896 are no whole blocks of 256: llama.cpp's Q4_K_M has Q5_0 and Q8_0 there. This is Qwen2.5-0.5B with fewer layers, a shorter
// feed-forward part and a small vocabulary.
func TestForwardOfAMixture(t *testing.T) {
	testkit.NotUnderRace(t)
	file, m := modeltest.Tiny(t, tinymodel.Options{
		Architecture: "qwen2", Hidden: 896, Heads: 14, KVHeads: 2, HeadDim: 64, FFN: 512, Seed: 6, Type: quant.Q5_0,
		Types: map[string]quant.Type{
			"token_embd.weight": quant.Q8_0, "blk.0.attn_v.weight": quant.Q8_0,
			"blk.0.ffn_down.weight": quant.Q6_K, "blk.1.ffn_down.weight": quant.Q4_K,
		},
	})
	if t0, t1 := file.Tensors["blk.0.ffn_down.weight"], file.Tensors["blk.1.attn_q.weight"]; t0.Type != quant.Q6_K || t1.Type != quant.Q5_0 ||
		t1.Cols != 896 {
		t.Fatalf("tensors %v, and %v with rows of %d", t0.Type, t1.Type, t1.Cols)
	}
	checkFormulas(t, file, m, 7)
	checkExact(t, m, randomTokens(200, file.Vocab, 6), 3)
}

func eachModel(t *testing.T, formats []quant.Type, check func(t *testing.T, file *weights.Model, m *llama.Model)) {
	t.Helper()
	for name, options := range shapes {
		for _, format := range formats {
			t.Run(fmt.Sprint(name, " ", format), func(t *testing.T) {
				options.Type = format
				file, m := modeltest.Tiny(t, options)
				check(t, file, m)
			})
		}
	}
}

func checkFormulas37(t *testing.T, file *weights.Model, m *llama.Model) {
	t.Helper()
	checkFormulas(t, file, m, 37)
}

// checkFormulas: the logits of so many tokens are what the formulas give.
func checkFormulas(t *testing.T, file *weights.Model, m *llama.Model, n int) {
	t.Helper()
	tokens := randomTokens(n, file.Vocab, 5)
	got := modeltest.NewWorker(t, m, 2).Forward([]llama.Span{{Tokens: tokens, Pages: pages(t, m, len(tokens)), Logits: len(tokens)}})
	largest := 0.0
	for i, row := range wantLogits(file, tokens) {
		for j, want := range row {
			largest = max(largest, math.Abs(want))
			if difference := math.Abs(float64(got[i*file.Vocab+j]) - want); !(difference < 2e-4) {
				t.Fatalf("token %d: logit %d is %g, want %g", i, j, got[i*file.Vocab+j], want)
			}
		}
	}
	if largest < 1 {
		t.Errorf("the largest logit is %g: nothing was tested", largest)
	}
}

// checkExact350: a token's logits are the same bits however its sequence is computed.
func checkExact350(t *testing.T, file *weights.Model, m *llama.Model) {
	t.Helper()
	checkExact(t, m, randomTokens(350, file.Vocab, 6), 350)
}

// checkExact computes the last logits of tokens in one go, and in all other ways.
func checkExact(t *testing.T, m *llama.Model, tokens []int32, logits int) {
	t.Helper()
	memory := pages(t, m, len(tokens))
	whole := slices.Clone(modeltest.NewWorker(t, m, 1).Forward([]llama.Span{{Tokens: tokens, Pages: memory, Logits: logits}}))
	for _, threads := range []int{1, 2} {
		w := modeltest.NewWorker(t, m, threads)
		checkSame(t, fmt.Sprintf("pieces of 77, %d threads", threads), pieces(w, pages(t, m, len(tokens)), tokens, 0, 77, logits, nil), whole)
		checkSame(t, fmt.Sprintf("whole, %d threads", threads), pieces(w, pages(t, m, len(tokens)), tokens, 0, len(tokens), logits, nil), whole)
	}
	checkSame(
		t,
		"while another request decodes",
		pieces(modeltest.NewWorker(t, m, 2), pages(t, m, len(tokens)), tokens, 0, 77, logits, decoding(t, m, tokens)),
		whole,
	)
	// The first 10 pages come from another sequence that began alike.
	w, other := modeltest.NewWorker(t, m, 1), pages(t, m, 200)
	w.Forward([]llama.Span{{Tokens: slices.Concat(tokens[:170], tokens[:30]), Pages: other}})
	rest := pieces(w, append(other[:10:10], pages(t, m, len(tokens))[10:]...), tokens, 160, len(tokens), min(logits, len(tokens)-160), nil)
	checkSame(t, "on a reused prefix", rest, whole[len(whole)-len(rest):])
}

func checkSame(t *testing.T, way string, got, want []float32) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
		t.Errorf("%s: other logits than in one go", way)
	}
}

// decoding is a request that has a prompt behind it.
func decoding(t testing.TB, m *llama.Model, tokens []int32) *llama.Span {
	s := &llama.Span{Pages: pages(t, m, 80), Logits: 1}
	first := modeltest.NewWorker(t, m, 1).Forward([]llama.Span{{Tokens: tokens[10:50], Pages: s.Pages, Logits: 1}})
	s.Position, s.Tokens = 40, []int32{modeltest.Greedy(first)}
	return s
}

// pieces computes tokens from a position on, some at a time, beside a request that decodes. It returns the last logits.
func pieces(w modeltest.Worker, memory []gpu.Page, tokens []int32, from, size, logits int, decoding *llama.Span) []float32 {
	var all []float32
	for at := from; at < len(tokens); at += size {
		end := min(at+size, len(tokens))
		wanted := max(0, end-max(at, len(tokens)-logits))
		spans := []llama.Span{{Tokens: tokens[at:end], Position: at, Pages: memory, Logits: wanted}}
		skip := 0
		if decoding != nil {
			spans = slices.Insert(spans, 0, *decoding)
		}
		out := w.Forward(spans)
		if decoding != nil {
			skip = len(out) / (1 + wanted)
			decoding.Position++
			decoding.Tokens = []int32{modeltest.Greedy(out[:skip])}
		}
		all = append(all, out[skip:]...)
	}
	return all
}

// Some spans need logits and some do not, in any order.
func TestForwardOfManySpans(t *testing.T) {
	file, m := modeltest.Tiny(t, tinymodel.Options{})
	tokens := randomTokens(60, file.Vocab, 7)
	alone := func(at, n, logits int) []float32 {
		own := llama.Span{Tokens: tokens[at : at+n], Pages: pages(t, m, n), Logits: logits}
		return slices.Clone(modeltest.NewWorker(t, m, 1).Forward([]llama.Span{own}))
	}
	span := func(at, n, logits int) llama.Span {
		return llama.Span{Tokens: tokens[at : at+n], Pages: pages(t, m, n), Logits: logits}
	}
	w := modeltest.NewWorker(t, m, 1)
	for range 2 { // the second time in memory that was used
		got := w.Forward([]llama.Span{span(0, 20, 0), span(20, 3, 2), span(23, 17, 0), span(40, 1, 1), span(41, 19, 19)})
		want := slices.Concat(alone(20, 3, 2), alone(40, 1, 1), alone(41, 19, 19))
		if !slices.Equal(got, want) {
			t.Fatal("together, spans give other logits than alone")
		}
		if got := w.Forward([]llama.Span{span(0, 20, 0)}); len(got) != 0 {
			t.Errorf("%d logits were not wanted", len(got))
		}
		if got := w.Forward(nil); len(got) != 0 {
			t.Errorf("%d logits of nothing", len(got))
		}
	}
}

func TestForwardRefusesMissingPages(t *testing.T) {
	_, m := modeltest.Tiny(t, tinymodel.Options{})
	for name, span := range map[string]llama.Span{
		"pages":  {Tokens: make([]int32, 17), Pages: pages(t, m, 16)},
		"logits": {Tokens: make([]int32, 3), Pages: pages(t, m, 16), Logits: 4},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			modeltest.NewWorker(t, m, 1).Forward([]llama.Span{span})
		})
	}
}

// What cannot be computed is refused, with the tensor's name.
func TestNew(t *testing.T) {
	file, _ := modeltest.Tiny(t, tinymodel.Options{})
	for name, broken := range map[string]func(m *weights.Model){
		"dimensions":         func(m *weights.Model) { m.HeadDim = 12 },
		"blk.1.ffn_up":       func(m *weights.Model) { delete(m.Tensors, "blk.1.ffn_up.weight") },
		"blk.0.attn_norm":    func(m *weights.Model) { delete(m.Tensors, "blk.0.attn_norm.weight") },
		"output_norm.weight": func(m *weights.Model) { edit(m, "output_norm.weight", func(t *weights.Tensor) { t.Rows = 2 }) },
		"blk.0.attn_q": func(m *weights.Model) {
			edit(m, "blk.0.attn_q.weight", func(t *weights.Tensor) { t.Data = t.Data[1:] })
		},
		"token_embd": func(m *weights.Model) {
			edit(m, "token_embd.weight", func(t *weights.Tensor) { t.Cols, t.Rows = t.Cols/16, t.Rows*16 })
		},
	} {
		m := *file
		m.Tensors = maps.Clone(file.Tensors)
		broken(&m)
		if _, err := llama.New(&m, gpu.CPU{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func edit(m *weights.Model, name string, f func(*weights.Tensor)) {
	tensor := m.Tensors[name]
	f(&tensor)
	m.Tensors[name] = tensor
}

// Steps of a small model, for allocations: a prompt of 512 tokens, and one token behind it.
func BenchmarkForward(b *testing.B) {
	file, m := modeltest.Tiny(b, tinymodel.Options{Context: 1024})
	benchmark(b, file, m, 512)
}

// benchmark computes prompts, and one token behind each, whose keys and values are random.
func benchmark(b *testing.B, file *weights.Model, m *llama.Model, prompts ...int) {
	for _, n := range prompts {
		tokens, memory := randomTokens(n+1, file.Vocab, 8), pages(b, m, n+1)
		for _, threads := range []int{1, 2} {
			w := modeltest.NewWorker(b, m, threads)
			b.Run(fmt.Sprintf("prefill=%d/threads=%d", n, threads), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w.Forward([]llama.Span{{Tokens: tokens[:n], Pages: memory, Logits: 1}})
				}
				b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "tokens/s")
			})
			b.Run(fmt.Sprintf("decode behind=%d/threads=%d", n, threads), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w.Forward([]llama.Span{{Tokens: tokens[n:], Position: n, Pages: memory, Logits: 1}})
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}

// TestBest: spans may have the best token in place of their logits, beside others that have logits.
func TestBest(t *testing.T) {
	file, m := modeltest.Tiny(t, shapes["llama"])
	span := func(seed uint64, n, logits int) llama.Span {
		return llama.Span{Tokens: randomTokens(n, file.Vocab, seed), Pages: pages(t, m, n), Logits: logits}
	}
	spans := []llama.Span{span(1, 20, 2), span(2, 17, 1), span(3, 9, 0), span(4, 12, 3)}
	w := modeltest.NewWorker(t, m, 2)
	all := slices.Clone(w.Forward(spans))
	var best [4]int32
	for _, chosen := range [][]int{{0}, {1, 2}, {3, 0}, {0, 1, 2, 3}} {
		var want []float32
		row := 0
		for i, s := range spans {
			spans[i].Best, best[i] = nil, -1
			own := all[row*m.Vocab:][:s.Logits*m.Vocab]
			row += s.Logits
			if slices.Contains(chosen, i) {
				spans[i].Best = &best[i]
				continue
			}
			want = append(want, own...)
		}
		checkSame(t, fmt.Sprint("best of ", chosen), w.Forward(spans), want)
		row = 0
		for i, s := range spans {
			row += s.Logits
			want := int32(-1)
			if s.Logits > 0 && s.Best != nil {
				want = modeltest.Greedy(all[(row-1)*m.Vocab:][:m.Vocab])
			}
			if best[i] != want {
				t.Errorf("best of %v: span %d has %d, want %d", chosen, i, best[i], want)
			}
		}
	}
}
