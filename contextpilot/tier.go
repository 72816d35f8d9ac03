package contextpilot

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
)

// tiers numbers the tiers of Config.LoadCost, from 1. Tier 0 is the engine's own memory; the last number stands for
// tiers that are not listed. It is never changed.
type tiers struct {
	numbers map[string]uint8
	costs   [tree.MaxTier + 1]float64
}

func checkTiers(costs map[string]float64) error {
	if len(costs) > tree.MaxTier-1 {
		return fmt.Errorf("%w: LoadCost names %d tiers, want at most %d", ErrBadConfig, len(costs), tree.MaxTier-1)
	}
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		if c := costs[name]; name == "" || !(c >= 0 && c <= 1) {
			return fmt.Errorf("%w: LoadCost %q: %v, want a name and a cost from 0 to 1", ErrBadConfig, name, c)
		}
	}
	return nil
}

func newTiers(costs map[string]float64) *tiers {
	t := &tiers{numbers: map[string]uint8{}}
	for i, name := range slices.Sorted(maps.Keys(costs)) {
		t.numbers[name] = uint8(i + 1)
		t.costs[i+1] = costs[name]
	}
	for i := len(costs) + 1; i <= tree.MaxTier; i++ {
		t.costs[i] = 1
	}
	return t
}

func (t *tiers) number(name string) uint8 {
	if name == "" {
		return 0
	}
	if n, ok := t.numbers[name]; ok {
		return n
	}
	return tree.MaxTier
}
