package sim_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/sim"
)

func TestConformance(t *testing.T) {
	t.Run("unlimited", func(t *testing.T) {
		enginetest.Run(t, func(*testing.T) engines.Engine { return sim.New(sim.Options{}) })
	})
	t.Run("small cache", func(t *testing.T) {
		enginetest.Run(t, func(*testing.T) engines.Engine { return sim.New(sim.Options{CapacityTokens: 64}) })
	})
}
