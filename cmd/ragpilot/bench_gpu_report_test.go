package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// TestReportGPU: goals that were not reached are in the table, wrong results are an error, too.
func TestReportGPU(t *testing.T) {
	row := gpu.Measurement{Operation: "move", Median: 2, Bound: 1, Goal: .85, Right: true}
	name := filepath.Join(t.TempDir(), "results.md")
	var b strings.Builder
	err := reportGPU(&b, name, gpu.Measurements{Card: "Some card", Rows: []gpu.Measurement{row}}, nil)
	if err != nil || !strings.Contains(b.String(), "**not reached**") {
		t.Errorf("%v\n%s", err, b.String())
	}
	if page, err := os.ReadFile(name); err != nil || string(page) != benchGPUHead+b.String() {
		t.Errorf("%v: %s", err, page)
	}
	row.Right = false
	b.Reset()
	err = reportGPU(&b, "", gpu.Measurements{Rows: []gpu.Measurement{row, row}}, nil)
	if err == nil || err.Error() != "wrong results: move; move" || !strings.Contains(b.String(), "**wrong results**") || exitStatus(err) != 1 {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := reportGPU(&b, "", gpu.Measurements{}, gpu.ErrLost); !errors.Is(err, gpu.ErrLost) || b.Len() > 0 {
		t.Errorf("%v\n%s", err, b.String())
	}
}
