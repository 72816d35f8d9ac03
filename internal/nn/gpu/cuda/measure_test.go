//go:build cuda

package cuda

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/gpu/cuda/emulator"
)

// measured are the rows of Measure, in their order.
var measured = []string{
	"kv_copy to the card", "kv_copy from the card", "gather", "move", "turn", "page_copy", "attend", "attend, sums alone", "probe", "attend",
	"store", "value_norms", "matmul Q4_K", "matmul Q4_K", "matmul Q4_K", "matmul F16", "matmul F16", "matmul F16", "interference", "norm",
	"add", "gate", "rotate", "top_k", "argmax",
}

func onEmulator(t *testing.T) {
	t.Helper()
	if err := usable(0); err != nil {
		t.Skipf("not run: %v", err)
	}
	if !emulator.Present() {
		t.Skip("not run: ragpilot bench gpu measures a card")
	}
}

// TestMeasure: all rows are there and right, and the card has everything back.
func TestMeasure(t *testing.T) {
	onEmulator(t)
	var progress []string
	m, err := gpu.Measure(t.Context(), func(next string) { progress = append(progress, next) })
	if err != nil {
		t.Fatal(err)
	}
	if live := emulator.Count(0); live != (emulator.Live{}) {
		t.Errorf("left on the card: %+v", live)
	}
	if !m.Emulated || !strings.Contains(m.Card, "4 multiprocessors at 1000 MHz") || !strings.HasPrefix(m.Driver, "CUDA 1") {
		t.Errorf("emulated %t, card %q, driver %q", m.Emulated, m.Card, m.Driver)
	}
	if len(m.Rows) != len(measured) || len(progress) != len(measured)+1 {
		t.Fatalf("%d rows, %d times progress, want %d rows", len(m.Rows), len(progress), len(measured))
	}
	for i, r := range m.Rows {
		if r.Operation != measured[i] || !r.Right || len(r.Sum) != 12 || r.Shape == "" || (r.Bytes == 0) == (r.Flops == 0) || r.Median <= 0 ||
			r.Min <= 0 || r.Min > r.Median || r.Bound <= 0 {
			t.Errorf("row %d, want %s: %+v", i, measured[i], r)
		}
	}
	var table strings.Builder
	if err := m.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
}

// TestMeasureFails: wherever it ends, the card has everything back.
func TestMeasureFails(t *testing.T) {
	onEmulator(t)
	nothing := func(string) {}
	for _, fault := range []string{
		"launch:gate:1:701", "launch:argmax:2:701", "launch:kv_copy:3:701", "alloc:5:2", "alloc:9:2", "hostalloc:5:2", "copy:20:1",
		"async:probe:2:719",
	} {
		t.Setenv("RP_EMU_FAULT", fault)
		if _, err := Measure(t.Context(), 0, nothing); err == nil || !strings.Contains(err.Error(), "cuda:0") {
			t.Errorf("%s: %v", fault, err)
		}
		if live := emulator.Count(0); live != (emulator.Live{}) {
			t.Errorf("%s: left on the card: %+v", fault, live)
		}
	}
	t.Setenv("RP_EMU_FAULT", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, 0, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Measure(t.Context(), 7, nothing); !errors.Is(err, gpu.ErrNoDevice) {
		t.Errorf("card 7: %v", err)
	}
}

// TestMeasureFindsWrongResults: one bit is enough where results are to be the same bits.
func TestMeasureFindsWrongResults(t *testing.T) {
	for _, tt := range []struct {
		off    float32
		within float64
		want   bool
	}{{0, 0, true}, {1e-6, 0, false}, {1e-6, 1e-5, true}, {1e-4, 1e-5, false}} {
		same := func(d gpu.Device) ([]byte, error) {
			one := []float32{.5, 1}
			if d.Name() != "cpu" {
				one[0] += tt.off
			}
			return view(one), nil
		}
		right, sum, err := compared(named{gpu.CPU{}}, same, tt.within)
		if right != tt.want || len(sum) != 12 || err != nil {
			t.Errorf("off by %g within %g: %t, %q, %v", tt.off, tt.within, right, sum, err)
		}
	}
}

// named is the CPU by another name.
type named struct{ gpu.CPU }

func (named) Name() string { return "another" }
