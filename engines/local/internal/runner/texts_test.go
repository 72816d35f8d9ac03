package runner_test

import (
	_ "embed"
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// texts are 24 pieces of this project's documents as they once were, from which nothing was tuned.
//
//go:embed testdata/texts.txt
var texts string

// Of each text the first tokens are blocks, the next are the question, and what follows them is scored.
const (
	contextTokens  = 1024
	blockTokens    = 256
	questionTokens = 24
	scoredTokens   = 32
)

var sweepTexts = flag.Int(
	"sweep-texts",
	0,
	"number of texts for TestBlockSizes, up to 24; 0: it is not run, and TestTexts has every other text, and no more than its bars need",
)

// head is what stands in front of blocks in a chat.
const head = "<|im_start|>system\nUse the documents to answer the question.<|im_end|>\n<|im_start|>user\n"

// method is one way to compute a prompt.
type method struct {
	name     string
	selector runner.Selector
	share    float64
}

// TestTexts: how far predictions are from those of a full prefill, as KL divergence, with blocks computed alone and behind the head of the
// prompt.
func TestTexts(t *testing.T) {
	path := modeltest.Fast(t)
	methods := []method{
		{"naive", runner.None, 0},
		{"10 %", runner.Prophet, 0.1},
		{"20 %", runner.Prophet, 0.2},
		{"40 %", runner.Prophet, 0.4},
		{"cacheblend 20 %", runner.CacheBlend, 0.2},
		{"epic 20 %", runner.EPIC, 0.2},
	}
	behind, some := methods[:3], allTexts()
	if *sweepTexts == 0 {
		// Half of the texts are enough for the bars, and all of them take ten minutes.
		for i := range len(some) / 2 {
			some[i] = some[2*i]
		}
		some = some[:len(some)/2]
	} else { // not for the bars
		methods = append(methods, method{"attention 10 %", runner.Attention, 0.1})
		behind = append(slices.Clone(methods[:4]), methods[6])
	}
	t.Run("alone", func(t *testing.T) {
		kl := divergences(t, path, "", methods, blockTokens, some)
		mended(t, methods, kl, 0.5, 0.65)
		if !(kl[0] > kl[1] && kl[1] > kl[2] && kl[2] > kl[3]) {
			t.Errorf("KL %v does not fall with the share", kl[:4])
		}
		if kl[2] >= kl[4] || kl[2] >= kl[5] {
			t.Errorf("at 20 %% prophet has %.4f, cacheblend %.4f, epic %.4f", kl[2], kl[4], kl[5])
		}
	})
	t.Run("behind the head", func(t *testing.T) {
		mended(t, behind, divergences(t, path, head, behind, blockTokens, some), 0.35, 0.55)
	})
}

func allTexts() []string { return strings.Split(texts, "\n=== \n") }

// TestBlockSizes prints how far predictions are from those of a full prefill by the length of blocks, for docs/load/block-size.sh.
func TestBlockSizes(t *testing.T) {
	all := allTexts()
	if *sweepTexts < 1 || *sweepTexts > len(all) {
		t.Skipf("-sweep-texts %d: want 1 to %d", *sweepTexts, len(all))
	}
	path := modeltest.Fast(t)
	methods := []method{{"naive", runner.None, 0}, {"20 %", runner.Prophet, 0.2}}
	t.Logf("%d of %d texts", *sweepTexts, len(all))
	for _, in := range []struct{ name, head string }{{"alone", ""}, {"behind the head", head}} {
		for _, size := range []int{64, 128, 256, 512} {
			kl := divergences(t, path, in.head, methods, size, all[:*sweepTexts])
			t.Logf("%-16s blocks of %3d tokens: naive KL %.4f, 20 %% KL %.4f, %5.1f %% mended", in.name, size, kl[0], kl[1], 100*(1-kl[1]/kl[0]))
		}
	}
}

// mended prints the divergences, and wants a tenth and a fifth computed again to remove so much of naive reuse's.
func mended(t *testing.T, methods []method, kl []float64, tenth, fifth float64) {
	t.Helper()
	for i, m := range methods {
		t.Logf("%-16s KL %.4f, %5.1f %% of naive mended", m.name, kl[i], 100*(1-kl[i]/kl[0]))
	}
	if a, b := 1-kl[1]/kl[0], 1-kl[2]/kl[0]; a < tenth || b < fifth {
		t.Errorf("10 %% mends %.3f and 20 %% %.3f, want %g and %g", a, b, tenth, fifth)
	}
}

// divergences are the means over texts of each method, with blocks of so many tokens.
func divergences(t *testing.T, path, head string, methods []method, size int, all []string) []float64 {
	t.Helper()
	file, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	model, err := llama.New(file, gpu.CPU{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{Model: model, Threads: runtime.GOMAXPROCS(0), Pages: 400, Running: 4, Step: 128})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sums := make([]float64, len(methods))
	for i, text := range all {
		tokens := file.Tokenizer.Encode(strings.TrimSpace(text), false)
		if need := contextTokens + questionTokens + scoredTokens; len(tokens) < need {
			t.Fatalf("text %d has %d tokens, want %d", i, len(tokens), need)
		}
		l := layout{prompt: file.Tokenizer.Encode(head, true)}
		l.head = len(l.prompt)
		which := make([]int, contextTokens/size)
		for j := range which {
			from := l.head + j*size
			l.blocks = append(l.blocks, runner.Extent{From: from, To: from + size})
			which[j] = j
		}
		end := contextTokens + questionTokens
		l.prompt = append(l.prompt, tokens[:end]...)
		answer := tokens[end:][:scoredTokens]
		salt := fmt.Sprint(i)
		want := distributions(r, l, salt+"exact", answer, nil)
		l.warm(r, salt, which...)
		for j, m := range methods {
			got := distributions(r, l, salt, answer, l.reuse(m.share, m.selector))
			sum := 0.0
			for k := range want {
				sum += divergence(want[k], got[k])
			}
			sums[j] += sum / float64(len(want)) / float64(len(all))
		}
	}
	return sums
}

// distributions are the logits in front of each token of the answer.
func distributions(r *runner.Runner, l layout, salt string, answer []int32, reuse *runner.Reuse) (rows [][]float32) {
	r.Submit(runner.Request{
		Prompt: l.prompt, Salt: salt, Reuse: reuse, Forced: answer,
		OnLogits: func(l []float32) { rows = append(rows, slices.Clone(l)) },
	}).
		Wait()
	return rows[:len(answer)]
}

// divergence is KL(p ‖ q) of two rows of logits, in nats.
func divergence(p, q []float32) float64 {
	lp, lq := logSum(p), logSum(q)
	sum := 0.0
	for i := range p {
		a, b := float64(p[i])-lp, float64(q[i])-lq
		sum += math.Exp(a) * (a - b)
	}
	return sum
}

func logSum(x []float32) float64 {
	most, sum := float64(slices.Max(x)), 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) - most)
	}
	return most + math.Log(sum)
}
