package qdrant_test

import (
	"io"
	"os"
	"testing"

	"github.com/ragpilot/ragpilot/internal/storetest"
)

// TestRealExample runs the example that needs a server and compares what it prints.
func TestRealExample(t *testing.T) {
	addr := storetest.Qdrant(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	err = handbook(addr, newCollection(t, addr))
	os.Stdout = stdout
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = "valves.md#0 bc05df25 Valves hold water back.\npumps.md#0 780e4e04 Pumps move water.\n"
	if string(out) != want {
		t.Errorf("it prints\n%s, want\n%s", out, want)
	}
}
