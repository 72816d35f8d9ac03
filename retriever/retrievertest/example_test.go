package retrievertest_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/retriever/retrievertest"
)

// A store's package calls the suite from a test of its own.
func Example() {
	_ = func(t *testing.T) { // TestConformance
		retrievertest.Run(t, retrievertest.Subject{
			New: func(testing.TB) retrievertest.Store { return newMemory(false) },
		})
	}
	// Output:
}
