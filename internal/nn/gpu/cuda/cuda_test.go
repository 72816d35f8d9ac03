//go:build cuda

package cuda

import (
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/gpu/cuda/emulator"
	"github.com/ragpilot/ragpilot/internal/nn/gpu/gputest"
)

// card opens a card, and sees that it has everything back in the end.
func card(t *testing.T, n int, o gpu.Options) gpu.Device {
	t.Helper()
	if err := usable(n); err != nil {
		t.Skipf("not run: %v", err)
	}
	d, err := Open(n, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if emulator.Present() {
			emulator.Check()
			if live := emulator.Count(n); live != (emulator.Live{}) {
				t.Errorf("left on card %d: %+v", n, live)
			}
		}
	})
	return d
}

func TestCard(t *testing.T) {
	gputest.Run(t, func(t *testing.T) gpu.Device { return card(t, 0, gpu.Options{}) })
}
