package openai

import (
	"hash/maphash"
	"sync"
)

// textKey stands for a text. The seeded hash keeps callers from making texts collide; the length is there because
// it costs nothing.
type textKey struct {
	hash   uint64
	length int
}

// countCache holds the token counts of the most recently used texts, without the texts. It has one lock; what it
// saves is a round trip to the engine, so the lock is not what anyone waits for.
type countCache struct {
	seed maphash.Seed
	mu   sync.Mutex
	slot map[textKey]int32 // guarded by mu, like all below
	ring []countEntry      // entry 0 is the list's head: next is the newest, prev the oldest
	size int
}

type countEntry struct {
	key        textKey
	count      int
	prev, next int32
}

// newCountCache returns a cache of size texts, at least 1.
func newCountCache(size int) *countCache {
	return &countCache{
		seed: maphash.MakeSeed(),
		slot: make(map[textKey]int32),
		ring: make([]countEntry, 1),
		size: size,
	}
}

func (c *countCache) key(text string) textKey {
	return textKey{maphash.String(c.seed, text), len(text)}
}

func (c *countCache) get(key textKey) (count int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.slot[key]
	if !ok {
		return 0, false
	}
	c.unlink(i)
	c.pushFront(i)
	return c.ring[i].count, true
}

func (c *countCache) put(key textKey, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.slot[key]
	switch {
	case ok:
		c.unlink(i)
	case len(c.ring) <= c.size:
		i = int32(len(c.ring))
		c.ring = append(c.ring, countEntry{})
	default:
		i = c.ring[0].prev
		c.unlink(i)
		delete(c.slot, c.ring[i].key)
	}
	c.ring[i].key, c.ring[i].count = key, count
	c.slot[key] = i
	c.pushFront(i)
}

func (c *countCache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.slot)
}

func (c *countCache) unlink(i int32) {
	e := c.ring[i]
	c.ring[e.prev].next, c.ring[e.next].prev = e.next, e.prev
}

func (c *countCache) pushFront(i int32) {
	first := c.ring[0].next
	c.ring[i].prev, c.ring[i].next = 0, first
	c.ring[first].prev = i
	c.ring[0].next = i
}
