package tiktoken

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	cacheSlots = 1 << 15 // of 8 bytes
	countBits  = 24      // of a slot; the rest identifies the text
	maxCount   = 1<<countBits - 1
)

// countCache is a direct-mapped table of counts: one slot per hash, a newer text overwrites an older one. Recounting
// a text costs well under a millisecond, so this is worth more here than knowing which text was used least recently
// is: no lock, no allocation, a fixed size. The hash is seeded, and 55 bits of it distinguish texts.
type countCache struct {
	seed  maphash.Seed
	slots []atomic.Uint64
}

func newCountCache() *countCache {
	return &countCache{seed: maphash.MakeSeed(), slots: make([]atomic.Uint64, cacheSlots)}
}

func (c *countCache) key(text string) uint64 { return maphash.String(c.seed, text) }

func (c *countCache) get(key uint64) (count int, ok bool) {
	entry := c.slots[key%cacheSlots].Load()
	// A count is at least 1, so an empty slot never matches.
	if entry&maxCount == 0 || entry>>countBits != key>>countBits {
		return 0, false
	}
	return int(entry & maxCount), true
}

func (c *countCache) put(key uint64, count int) {
	if count <= 0 || count > maxCount {
		return
	}
	c.slots[key%cacheSlots].Store(key>>countBits<<countBits | uint64(count))
}
