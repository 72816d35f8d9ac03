package residency

import (
	"strings"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// tier is where blocks lie. Only those on the GPU are resident; the others are counted apart, because some engines
// never report that a lower tier drops a block.
type tier uint8

const (
	gpu      tier = 0
	maxTiers tier = 16 // names beyond it share the last
)

type tiers struct {
	byName map[string]tier
	names  []string
	blocks []int // blocks with at least one copy
	copies map[tiered]int32
}

type tiered struct {
	hash kvevents.Hash
	tier tier
}

func newTiers() tiers {
	return tiers{byName: make(map[string]tier), names: []string{"GPU"}, blocks: []int{0}, copies: make(map[tiered]int32)}
}

// tier returns where an event's blocks lie.
func (x *Index) tier(ev *kvevents.Event) tier {
	if ev.OnGPU() {
		return gpu
	}
	name := ev.Medium
	if strings.EqualFold(ev.Locality, "REMOTE") {
		name = "REMOTE"
	}
	return x.tiers.tier(name)
}

func (t *tiers) tier(name string) tier {
	if n, ok := t.byName[name]; ok {
		return n
	}
	upper := strings.ToUpper(name)
	n, ok := t.byName[upper]
	if !ok {
		if len(t.names) == int(maxTiers) {
			return maxTiers - 1
		}
		n = tier(len(t.names))
		t.names, t.blocks = append(t.names, upper), append(t.blocks, 0)
		t.byName[upper] = n
	}
	if len(t.byName) < 4*int(maxTiers) {
		t.byName[name] = n
	}
	return n
}

func (t *tiers) add(h kvevents.Hash, n tier) {
	k := tiered{h, n}
	if t.copies[k]++; t.copies[k] == 1 {
		t.blocks[n]++
	}
}

func (t *tiers) remove(h kvevents.Hash, n tier) bool {
	k := tiered{h, n}
	c := t.copies[k]
	switch c {
	case 0:
		return false
	case 1:
		t.blocks[n]--
		delete(t.copies, k)
	default:
		t.copies[k] = c - 1
	}
	return true
}

// of returns the name of a tier that has a block, as upper as possible.
func (t *tiers) of(h kvevents.Hash) string {
	for n, name := range t.names {
		if t.copies[tiered{h, tier(n)}] > 0 {
			return name
		}
	}
	return ""
}

// empty reports whether no lower tier has a block.
func (t *tiers) empty() bool { return len(t.copies) == 0 }

func (t *tiers) reset() {
	clear(t.copies)
	clear(t.blocks)
}

// lower returns the number of blocks in each tier but the GPU.
func (t *tiers) lower() map[string]int {
	m := make(map[string]int, len(t.names)-1)
	for i, name := range t.names[1:] {
		m[name] = t.blocks[i+1]
	}
	return m
}
