// Package modeltest opens the models that tests of the local engine use: the real one, and small random ones.
package modeltest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/compress"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/engines/local/model"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// SmolLM2 returns the path of SmolLM2-135M-Instruct: what RAGPILOT_SMOLLM2 names, or the model in the cache folder. If
// there is none, and in short runs without vector instructions, the test is skipped.
func SmolLM2(t testing.TB) string {
	t.Helper()
	if testing.Short() && compute.Kernel() == "portable" {
		t.Skip("takes minutes without vector instructions")
	}
	if path := os.Getenv("RAGPILOT_SMOLLM2"); path != "" {
		return path
	}
	path, ok := model.Find("smollm2")
	if !ok {
		t.Skip("needs SmolLM2: RAGPILOT_SMOLLM2 is not set, and ragpilot model pull smollm2 was not run")
	}
	return path
}

// Fast returns that path for a test that computes for a minute or more with vector instructions, and takes ten times as long without them:
// there, in short runs, and under the race detector it is skipped.
func Fast(t testing.TB) string {
	t.Helper()
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("computes for minutes")
	}
	path := SmolLM2(t)
	if compute.Kernel() == "portable" {
		t.Skip("takes ten minutes or more without vector instructions")
	}
	return path
}

// Tiny opens a small random model.
func Tiny(t testing.TB, o tinymodel.Options) (*weights.Model, *llama.Model) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(path, o); err != nil {
		t.Fatal(err)
	}
	return Open(t, path)
}

// Open opens a model's file for a test.
func Open(t testing.TB, path string) (*weights.Model, *llama.Model) {
	t.Helper()
	file, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	m, err := llama.New(file, gpu.CPU{})
	if err != nil {
		t.Fatal(err)
	}
	return file, m
}

// Worker is one whose device does not fail.
type Worker struct {
	*llama.Worker
	t testing.TB
}

// NewWorker returns a worker for the time of a test.
func NewWorker(t testing.TB, m *llama.Model, threads int) Worker {
	t.Helper()
	w, err := m.NewWorker(threads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return Worker{w, t}
}

// Forward computes spans and returns the wanted logits.
func (w Worker) Forward(spans []llama.Span) []float32 {
	w.t.Helper()
	logits, err := w.Worker.Forward(spans)
	if err != nil {
		w.t.Error(err)
	}
	return logits
}

// Pages returns pages for so many tokens, for the time of a test.
func Pages(t testing.TB, m *llama.Model, tokens int) []gpu.Page {
	t.Helper()
	pages, err := m.NewPages((tokens + llama.PageTokens - 1) / llama.PageTokens)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.FreePages(pages) })
	return pages
}

// Placed are a page's floats with its slots at position at and behind it: see [compress.Place].
func Placed(t testing.TB, m *llama.Model, floats []float32, positions []uint32, at int) []float32 {
	t.Helper()
	page := Pages(t, m, llama.PageTokens)[0]
	if err := compress.Place(NewWorker(t, m, 1).Worker, m, page, floats, positions, at); err != nil {
		t.Fatal(err)
	}
	return page.Host
}

// Greedy is the token with the largest logit, of equal ones the first.
func Greedy(logits []float32) int32 { return int32(compute.Largest(logits, 1)[0]) }
