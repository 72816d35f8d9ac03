package llama_test

import (
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// What two other programs, in Python and in C++, answer from the same file.
func TestSmolLM2(t *testing.T) {
	testkit.NotUnderRace(t)
	_, m := modeltest.Open(t, modeltest.SmolLM2(t))
	prompt := []int32{1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198}
	w, memory := modeltest.NewWorker(t, m, 2), pages(t, m, 32)
	logits := w.Forward([]llama.Span{{Tokens: prompt, Pages: memory, Logits: 1}})
	var answer []int32
	for len(answer) < 8 {
		answer = append(answer, modeltest.Greedy(logits))
		position := len(prompt) + len(answer) - 1
		logits = w.Forward([]llama.Span{{Tokens: answer[len(answer)-1:], Position: position, Pages: memory, Logits: 1}})
	}
	if want := []int32{504, 3575, 282, 4649, 314, 7042, 30, 2}; !slices.Equal(answer, want) {
		t.Errorf("answer %v, want %v", answer, want)
	}
}

// All that the tests of small models do one by one, in two prompts' time.
func TestSmolLM2IsExact(t *testing.T) {
	testkit.NotUnderRace(t)
	file, m := modeltest.Open(t, modeltest.SmolLM2(t))
	tokens := randomTokens(350, file.Vocab, 9)
	whole := slices.Clone(modeltest.NewWorker(t, m, 1).Forward([]llama.Span{{Tokens: tokens, Pages: pages(t, m, len(tokens)), Logits: 3}}))
	memory := pages(t, m, len(tokens))
	checkSame(
		t,
		"pieces of 77 on 2 threads while another request decodes",
		pieces(modeltest.NewWorker(t, m, 2), memory, tokens, 0, 77, 3, decoding(t, m, tokens)),
		whole,
	)
	// What lies behind the first 10 pages is computed once more.
	checkSame(
		t,
		"on a reused prefix",
		pieces(modeltest.NewWorker(t, m, 1), append(memory[:10:10], pages(t, m, len(tokens))[10:]...), tokens, 160, 350, 3, nil),
		whole,
	)
}

func BenchmarkSmolLM2(b *testing.B) {
	file, m := modeltest.Open(b, modeltest.SmolLM2(b))
	benchmark(b, file, m, 512, 4096)
}
