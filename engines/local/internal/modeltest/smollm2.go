// Package modeltest finds the real model that tests of the local engine use.
package modeltest

import (
	"os"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/model"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// SmolLM2 returns the path of SmolLM2-135M-Instruct: what RAGPILOT_SMOLLM2 names, or the model in the cache folder. If
// there is none, the test is skipped.
func SmolLM2(t testing.TB) string {
	t.Helper()
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
		t.Skip("needs vector instructions: GOEXPERIMENT=simd")
	}
	return path
}
