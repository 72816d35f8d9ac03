//go:build cuda

package llama_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	_ "github.com/ragpilot/ragpilot/internal/nn/gpu/cuda" // the device under test
	"github.com/ragpilot/ragpilot/internal/nn/gpu/cuda/emulator"
)

// TestCUDA compares a card with the CPU: a prompt in pieces, and an answer token by token, each token what the CPU chooses.
func TestCUDA(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			file, cpu := modeltest.Tiny(t, shape)
			card := modeltest.OnCard(t, file)
			compareDevices(t, cpu, card, randomTokens(40, file.Vocab, 3), 8)
		})
	}
}

// TestSmolLM2OnCUDA does it with a real model, by hand.
func TestSmolLM2OnCUDA(t *testing.T) {
	if os.Getenv("RAGPILOT_CUDA_SMOLLM2") == "" {
		t.Skip("not run: computes for half a minute; set RAGPILOT_CUDA_SMOLLM2=1")
	}
	file, cpu := modeltest.Open(t, modeltest.SmolLM2(t))
	card := modeltest.OnCard(t, file)
	compareDevices(t, cpu, card, []int32{1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198}, 8)
}

// compareDevices demands the same greedy answer, and logits within 1e-4.
func compareDevices(t *testing.T, cpu, card *llama.Model, prompt []int32, answer int) {
	t.Helper()
	models := []*llama.Model{cpu, card}
	var pages [2][]gpu.Page
	var workers [2]modeltest.Worker
	for i, m := range models {
		pages[i] = modeltest.Pages(t, m, len(prompt)+answer)
		workers[i] = modeltest.NewWorker(t, m, 2)
	}
	position, tokens, worst := 0, prompt[:len(prompt)/3], 0.0
	for n := 0; n < answer; {
		var logits [2][]float32
		for i, w := range workers {
			logits[i] = w.Forward([]llama.Span{{Tokens: tokens, Position: position, Pages: pages[i], Logits: 1}})
			if t.Failed() {
				return
			}
		}
		for i, want := range logits[0] {
			worst = max(worst, math.Abs(float64(logits[1][i]-want)))
		}
		chosen := modeltest.Greedy(logits[0])
		if got := modeltest.Greedy(logits[1]); got != chosen {
			t.Fatalf("token %d of the answer is %d, want %d", n, got, chosen)
		}
		if position += len(tokens); position < len(prompt) {
			tokens = prompt[position:]
			continue
		}
		n++
		tokens = []int32{chosen}
	}
	t.Logf("logits differ by at most %.2g", worst)
	if worst > 1e-4 {
		t.Errorf("logits differ by %g", worst)
	}
}

// TestRoomFailsOnCUDA: a call that finds no room leaves nothing behind that would run later, when its memory is others'.
func TestRoomFailsOnCUDA(t *testing.T) {
	if !emulator.Present() {
		t.Skip("not run: faults come from the emulated driver")
	}
	file, _ := modeltest.Tiny(t, shapes["llama"])
	card := modeltest.OnCard(t, file)
	tokens := randomTokens(40, file.Vocab, 3)
	pages := modeltest.Pages(t, card, len(tokens))
	call := func(w modeltest.Worker, n int) ([]float32, error) {
		return w.Worker.Forward([]llama.Span{{Tokens: tokens[:n], Pages: pages, Logits: 1}})
	}
	want, err := call(modeltest.NewWorker(t, card, 1), len(tokens))
	if err != nil {
		t.Fatal(err)
	}
	want = slices.Clone(want)
	for n := 1; ; n++ {
		w := modeltest.NewWorker(t, card, 1)
		t.Setenv("RP_EMU_FAULT", fmt.Sprintf("alloc:%d:2", n))
		_, err := call(w, 8)
		t.Setenv("RP_EMU_FAULT", "")
		if err != nil && !errors.Is(err, gpu.ErrMemory) {
			t.Errorf("allocation %d: %v", n, err)
		}
		if got, err := call(w, len(tokens)); err != nil || !slices.Equal(got, want) {
			t.Errorf("behind allocation %d: %v, or other logits", n, err)
		}
		if err == nil {
			break
		}
	}
}
