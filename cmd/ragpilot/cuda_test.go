//go:build cuda

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/gpu/cuda/emulator"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// card skips a test where there is none.
func card(t *testing.T) {
	t.Helper()
	if problem := gpu.Diagnose().Problem; problem != "" {
		t.Skipf("not run: %s; .ci/gpu.sh runs it with the emulated driver", problem)
	}
}

// askOverHTTP returns the status and the text, or the error, of an answer.
func askOverHTTP(t *testing.T, base string) (status int, text string) {
	t.Helper()
	req := testkit.Request(t, http.MethodPost, base+"/v1/chat/completions",
		strings.NewReader(`{"model":"tiny","messages":[{"role":"user","content":"1 2 3 4"}],"max_tokens":9,"temperature":0}`))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
		Error   struct{ Message string }
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if len(answer.Choices) == 1 {
		return resp.StatusCode, answer.Choices[0].Message.Content
	}
	return resp.StatusCode, answer.Error.Message
}

// TestEngineServeOnCard: answers over HTTP are those of the CPU. A kernel that fails is an error with its name and the status 503, and the
// next request is answered.
func TestEngineServeOnCard(t *testing.T) {
	card(t)
	cpu, _, _ := engineServe(t.Context(), t, "--device", "cpu")
	base, _, _ := engineServe(t.Context(), t, "--device", "cuda:0")
	_, want := askOverHTTP(t, cpu)
	if status, got := askOverHTTP(t, base); status != http.StatusOK || got != want || got == "" {
		t.Errorf("status %d, %q; want %q", status, got, want)
	}
	if !emulator.Present() {
		t.Skip("not run: faults come from the emulated driver")
	}
	t.Setenv("RP_EMU_FAULT", "launch:gate:1:701")
	if status, got := askOverHTTP(t, base); status != http.StatusServiceUnavailable || !strings.Contains(got, "cuda:0: gate") {
		t.Errorf("status %d, %q", status, got)
	}
	if status, got := askOverHTTP(t, base); status != http.StatusOK || got != want {
		t.Errorf("after the fault: status %d, %q; want %q", status, got, want)
	}
}

// TestDoctorOfCards: the doctor says which card computes, and what is wrong with it.
func TestDoctorOfCards(t *testing.T) {
	t.Setenv("RP_EMU_MEMORY", "4294967296") // the cache's 512 MB have room
	card(t)
	out, err := run(t, "doctor", "--engine", "local", "--model", tinyFile(t), "--no-probe")
	if err != nil || !strings.Contains(out, "cuda:0, driver CUDA ") || !strings.Contains(out, "compute capability ") {
		t.Errorf("%v\n%s", err, out)
	}
	if !emulator.Present() {
		t.Skip("not run: faults come from the emulated driver")
	}
	t.Setenv("RP_EMU_FAULT", "load:1:218;load:2:218")
	out, err = run(t, "doctor", "--engine", "local", "--model", tinyFile(t), "--no-probe")
	if err == nil || !strings.Contains(out, "the processor computes: device cuda:0: open: compile the kernels: CUDA error 218") ||
		!strings.Contains(out, "problem    cuda:0") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestBenchGPU: the table has the emulated driver's name on it, and is not written where those of cards are.
func TestBenchGPU(t *testing.T) {
	card(t)
	if !emulator.Present() {
		t.Skip("not run: ragpilot bench gpu measures a card")
	}
	name := filepath.Join(t.TempDir(), "results.md")
	out, err := run(t, "bench", "gpu", "--out", name)
	if err == nil || !strings.Contains(err.Error(), "emulated driver") {
		t.Errorf("--out: %v", err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file: %v", err)
	}
	for _, want := range []string{
		"These figures are of the emulated driver. They say nothing about a card.\n\nCard: Emulated device 0", "\n| kv_copy to the card | ",
		"\n| interference | ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "wrong results") {
		t.Errorf("wrong results:\n%s", out)
	}
	if _, err := run(t, "bench", "gpu"); err != nil {
		t.Errorf("goals that are not reached: %v", err)
	}
	t.Setenv("RP_EMU_FAULT", "launch:gate:1:701")
	if _, err := run(t, "bench", "gpu"); err == nil || !strings.Contains(err.Error(), "cuda:0: gate") {
		t.Errorf("a kernel that fails: %v", err)
	}
}
