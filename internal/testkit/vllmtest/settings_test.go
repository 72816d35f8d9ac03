//go:build unix

package vllmtest

import (
	"os"
	"strconv"
	"testing"
)

// Environment variables that say what to run on; .ci/enginetest.sh sets them.
const (
	envPython   = "RAGPILOT_VLLM_PYTHON"   // the Python of an environment that has vLLM
	envTiny     = "RAGPILOT_VLLM_TINY"     // folder of a small model: accuracy, doctor
	envSliding  = "RAGPILOT_VLLM_SLIDING"  // folder of a small model with sliding windows: doctor
	envModel    = "RAGPILOT_VLLM_MODEL"    // folder of a model worth timing: times to the first token
	envCount    = "RAGPILOT_VLLM_COUNT"    // folder of a small model with the tokens of the other: tokens computed
	envFigures  = "RAGPILOT_VLLM_FIGURES"  // folder that figures are written to; empty: they are only printed
	envRequests = "RAGPILOT_VLLM_REQUESTS" // requests of the trace that are timed, 600 if empty; what is expected is expected of 600
	envPool     = "RAGPILOT_VLLM_POOL"     // tokens that the cache of the timed server holds
	envDtype    = "RAGPILOT_VLLM_DTYPE"    // number format of the timed server
	envCut      = "RAGPILOT_VLLM_CUT"      // tokens that blocks of the trace are cut to, 110 if empty
	envPaired   = "RAGPILOT_VLLM_PAIRED"   // "1": arms send in turn, though the cache has not room for all of them
	envThreads  = "RAGPILOT_VLLM_THREADS"  // threads of the timed server
	envTable    = "RAGPILOT_VLLM_TABLE"    // table for batch, one that is made if empty
)

// needs returns the program and the model that a test runs, or skips it.
func needs(t *testing.T, model string) (python, folder string) {
	t.Helper()
	python, folder = os.Getenv(envPython), os.Getenv(model)
	if python == "" || folder == "" {
		t.Skipf("needs vLLM and a model: %s and %s name a Python that has vLLM and a model's folder", envPython, model)
	}
	return python, folder
}

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a positive number", name, text)
	}
	return n
}
