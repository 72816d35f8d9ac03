//go:build cuda

package modeltest

import (
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/gpu/cuda/emulator"
)

// Card skips a test where there is no card and no emulated driver, and sees that nothing is left on it in the end.
func Card(t testing.TB) {
	t.Helper()
	if problem := gpu.Diagnose().Problem; problem != "" {
		t.Skipf("not run: %s; .ci/gpu.sh runs it with the emulated driver", problem)
	}
	t.Cleanup(func() {
		if emulator.Present() {
			emulator.Check()
			if live := emulator.Count(0); live != (emulator.Live{}) {
				t.Errorf("left on the card: %+v", live)
			}
		}
	})
}

// OnCard makes a model of a file on the first card, for the time of a test.
func OnCard(t testing.TB, file *weights.Model) *llama.Model {
	t.Helper()
	Card(t)
	d, _, err := gpu.Open("cuda:0", gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	m, err := llama.New(file, d)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
