package enginetest_test

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// The suite is run from an engine package's own tests.
func ExampleRun() {
	testConformance := func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T) engines.Engine {
			engine, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1:8000"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = engine.Close() })
			return engine
		})
	}
	fmt.Printf("%T\n", testConformance)
	// Output: func(*testing.T)
}
