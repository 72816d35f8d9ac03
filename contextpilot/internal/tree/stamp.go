package tree

// stamp says when a node was last sent and where its cache entries lie: the clock of inserts in the lower bits, the
// tier in the upper four.
type stamp uint32

const (
	tierBits  = 4
	clockBits = 32 - tierBits
	clockMask = 1<<clockBits - 1
	// MaxTier is the highest tier; 0 is the engine's own memory.
	MaxTier = 1<<tierBits - 1
)

// Age returns the number of requests inserted since n was last part of one; 0: the newest request has it.
func (t *Tree) Age(n Node) int {
	return int((t.clock - uint32(*t.stamps.at(int32(n)))) & clockMask)
}

// Tier returns where n's cache entries lie.
func (t *Tree) Tier(n Node) uint8 { return uint8(*t.stamps.at(int32(n)) >> clockBits) }

// Recent returns Age and Tier.
func (t *Tree) Recent(n Node) (age int, tier uint8) {
	s := *t.stamps.at(int32(n))
	return int((t.clock - uint32(s)) & clockMask), uint8(s >> clockBits)
}

// stamp notes that n and all above it were sent now; what lay in another tier is loaded by that.
func (t *Tree) stamp(n Node) {
	t.clock = (t.clock + 1) & clockMask
	for ; ; n = t.node(n).parent {
		t.stamps.reach(int32(n))
		*t.stamps.at(int32(n)) = stamp(t.clock)
		if n == Root {
			return
		}
	}
}

// Move notes that what the request's path holds behind the first tokens lies in another tier now. A tier above
// MaxTier counts as MaxTier. The parts of the path that other requests use are theirs, too.
func (t *Tree) Move(id string, tokens int, tier uint8) bool {
	r := t.find(id)
	if r == 0 {
		return false
	}
	tier = min(tier, MaxTier)
	for n := t.reqs.at(r).end; n != Root && t.Depth(n) > tokens; n = t.node(n).parent {
		s := t.stamps.at(int32(n))
		*s = *s&clockMask | stamp(tier)<<clockBits
	}
	return true
}
