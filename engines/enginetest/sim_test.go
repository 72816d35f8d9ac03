package enginetest_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// TestSimulator runs the suite on an engine that is not one of its own fakes.
func TestSimulator(t *testing.T) {
	enginetest.Run(t, func(*testing.T) engines.Engine { return sim.New(sim.Options{}) })
}
