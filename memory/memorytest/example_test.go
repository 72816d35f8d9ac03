package memorytest_test

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/memorytest"
)

func Example() {
	// In a file of tests: func TestConformance(t *testing.T) { memorytest.RunBackend(t, open) }
	open := func(*testing.T) memory.Backend { return memory.NewInMemory() }
	_ = func(t *testing.T) { memorytest.RunBackend(t, open) }

	fmt.Println(open(nil) != nil)
	// Output: true
}
