package gpu_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// TestOpen: in this program no package has registered a driver.
func TestOpen(t *testing.T) {
	if gpu.Built() || gpu.Diagnose().Problem == "" {
		t.Errorf("built with a driver: %+v", gpu.Diagnose())
	}
	if d, fallback, err := gpu.Open("cpu", gpu.Options{}); err != nil || fallback != "" || d.Name() != "cpu" {
		t.Errorf("cpu: %v, %q, %v", d, fallback, err)
	}
	if d, fallback, err := gpu.Open("auto", gpu.Options{}); err != nil || !strings.Contains(fallback, "tag cuda") || d.Name() != "cpu" {
		t.Errorf("auto: %v, %q, %v", d, fallback, err)
	}
	if _, _, err := gpu.Open("cuda:1", gpu.Options{}); !errors.Is(err, gpu.ErrNoDevice) || !strings.Contains(err.Error(), "cuda:1") {
		t.Errorf("cuda:1: %v", err)
	}
	for _, name := range []string{"", "cuda", "cuda:", "cuda:-1", "cuda:x", "gpu", "cpu:0"} {
		if _, _, err := gpu.Open(name, gpu.Options{}); err == nil || errors.Is(err, gpu.ErrNoDevice) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestError(t *testing.T) {
	err := error(&gpu.Error{Device: "cuda:0", Operation: "alloc", What: "blk.3.attn_q.weight", Err: gpu.ErrMemory})
	if got, want := err.Error(), "device cuda:0: alloc of blk.3.attn_q.weight: out of memory"; got != want || !errors.Is(err, gpu.ErrMemory) {
		t.Errorf("%q, want %q", got, want)
	}
	err = &gpu.Error{Device: "cuda:0", Operation: "sync", Err: gpu.ErrLost}
	if got, want := err.Error(), "device cuda:0: sync: the device is lost"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
