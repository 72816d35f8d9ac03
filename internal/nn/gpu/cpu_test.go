package gpu_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/gpu/gputest"
)

func TestCPU(t *testing.T) {
	gputest.Run(t, func(*testing.T) gpu.Device { return gpu.CPU{} })
}
