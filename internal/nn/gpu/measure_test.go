package gpu_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

func someMeasurements() gpu.Measurements {
	return gpu.Measurements{
		Card: "Some card, 80.0 GB", Driver: "CUDA 13.0",
		Rows: []gpu.Measurement{
			{
				Operation: "gather", Shape: "1024 of 2048 tokens", Bytes: 536870912, Median: 200 * time.Microsecond, Min: 190500 * time.Nanosecond,
				Bound: 180 * time.Microsecond, Goal: .85, Right: true, Sum: "0123456789ab",
			},
			{
				Operation: "attend", Shape: "512 rows", Flops: 32e9, Median: 2 * time.Millisecond, Min: time.Millisecond,
				Bound: 500 * time.Microsecond, Goal: .5, Right: true, Sum: "00",
			},
			{Operation: "norm", Shape: "4 rows", Bytes: 1e6, Median: time.Microsecond, Min: time.Microsecond, Bound: 250, Right: true, Sum: "11"},
			{Operation: "add", Shape: "4 rows", Bytes: 1e6, Median: time.Microsecond, Min: time.Microsecond, Bound: 900, Goal: .5, Sum: "22"},
			{Operation: "gate", Shape: "none", Bound: 900, Right: true},
		},
	}
}

const someTable = `Card: Some card, 80.0 GB. Driver: CUDA 13.0.

| operation | shape | MB | GFLOP | median µs | least µs | of the bound | goal | result | sum |
|---|---|---|---|---|---|---|---|---|---|
| gather | 1024 of 2048 tokens | 536.9 | 0.00 | 200.0 | 190.5 | 0.90 | 0.85 | reached | ` + "`0123456789ab`" + ` |
| attend | 512 rows | 0.0 | 32.00 | 2000.0 | 1000.0 | 0.25 | 0.50 | **not reached** | ` + "`00`" + ` |
| norm | 4 rows | 1.0 | 0.00 | 1.0 | 1.0 | 0.25 | – | no goal | ` + "`11`" + ` |
| add | 4 rows | 1.0 | 0.00 | 1.0 | 1.0 | 0.90 | 0.50 | **wrong results** | ` + "`22`" + ` |
| gate | none | 0.0 | 0.00 | 0.0 | 0.0 | 0.00 | – | no goal | ` + "``" + ` |
`

func TestWriteTable(t *testing.T) {
	m := someMeasurements()
	var b strings.Builder
	if err := m.WriteTable(&b); err != nil || b.String() != someTable {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), someTable)
	}
	b.Reset()
	m.Emulated = true
	const first = "These figures are of the emulated driver. They say nothing about a card.\n\n"
	if err := m.WriteTable(&b); err != nil || b.String() != first+someTable {
		t.Errorf("emulated: %v\n%s", err, b.String())
	}
	if err := m.WriteTable(noWriter{}); !errors.Is(err, errNoWriter) {
		t.Errorf("a writer's error: %v", err)
	}
}

func TestWrong(t *testing.T) {
	if wrong := someMeasurements().Wrong(); !slices.Equal(wrong, []string{"add"}) {
		t.Errorf("%q", wrong)
	}
}

// TestMeasureWithoutDriver: in this program no package has registered one.
func TestMeasureWithoutDriver(t *testing.T) {
	m, err := gpu.Measure(t.Context(), func(next string) { t.Errorf("measures %s", next) })
	if !errors.Is(err, gpu.ErrNoDevice) || !strings.Contains(err.Error(), "tag cuda") || len(m.Rows) > 0 {
		t.Errorf("%v, %+v", err, m)
	}
}

var errNoWriter = errors.New("full")

type noWriter struct{}

func (noWriter) Write([]byte) (int, error) { return 0, errNoWriter }
