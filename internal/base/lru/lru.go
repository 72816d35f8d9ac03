// Package lru is a map in the order of last use. It forgets what was used least recently once it holds too much.
//
//	c := lru.New[string, int](1000)                                     // at most 1,000 entries
//	c := lru.With(lru.Options[string, string]{Weight: 1 << 20, Weigh: weigh}) // at most 1 MiB of entries
//
// The order of an index that holds millions of nodes by number (contextpilot/internal/tree, engines/sim, engines/kvevents/residency)
// is kept in these nodes, at eight bytes each, and not here.
package lru

import (
	"iter"
	"maps"
)

// Options bound a [Cache]. The zero value sets no bound: the owner drops what is oldest.
type Options[K comparable, V any] struct {
	Entries int // upper bound of the number of entries; 0: none
	Weight  int // upper bound of their total weight; the entry used last stays whatever it weighs; 0: none
	// Weigh returns the weight of an entry, which must not change while it is held; nil: 1.
	Weigh func(K, V) int
	// Changed is called with the difference whenever the total weight changes; nil: no call.
	Changed func(delta int)
}

// Cache maps K to V. Not safe for concurrent use.
type Cache[K comparable, V any] struct {
	opt    Options[K, V]
	weight int
	at     map[K]*node[K, V]
	peak   int         // the most entries since at was made
	ends   *node[K, V] // of a ring: older is the entry used last, newer the one used least recently
}

type node[K comparable, V any] struct {
	key          K
	value        V
	newer, older *node[K, V]
}

// New returns a Cache of at most limit entries (at least 1). Each weighs 1.
func New[K comparable, V any](limit int) *Cache[K, V] {
	return With(Options[K, V]{Entries: max(limit, 1)})
}

// With returns a Cache with options.
func With[K comparable, V any](o Options[K, V]) *Cache[K, V] {
	ends := new(node[K, V])
	ends.newer, ends.older = ends, ends
	return &Cache[K, V]{opt: o, at: map[K]*node[K, V]{}, ends: ends}
}

// Len returns the number of entries.
func (c *Cache[K, V]) Len() int { return len(c.at) }

// Weight returns the total weight of the entries.
func (c *Cache[K, V]) Weight() int { return c.weight }

// Get returns the value of key and marks it as used.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	n, ok := c.at[key]
	if !ok {
		return value, false
	}
	n.unlink()
	c.ends.link(n)
	return n.value, true
}

// Peek returns the value of key, which does not count as a use of it.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	n, ok := c.at[key]
	if !ok {
		return value, false
	}
	return n.value, true
}

// Has reports whether there is a value of key, which does not count as a use of it.
func (c *Cache[K, V]) Has(key K) bool {
	_, ok := c.at[key]
	return ok
}

// Put sets the value of key and marks it as used. The least recently used entries go while a bound is exceeded; the last of these is
// returned.
func (c *Cache[K, V]) Put(key K, value V) (goneKey K, gone V, full bool) {
	if n, ok := c.at[key]; ok {
		before := c.weigh(n)
		n.value = value
		n.unlink()
		c.ends.link(n)
		c.changed(c.weigh(n) - before)
	} else {
		c.insert(key, value, c.ends)
	}
	for c.opt.Entries > 0 && len(c.at) > c.opt.Entries || c.opt.Weight > 0 && c.weight > c.opt.Weight && len(c.at) > 1 {
		goneKey, gone, full = c.DropOldest()
	}
	return goneKey, gone, full
}

// PutBehind adds a new key as one that was used just before another, which must be there. Nothing goes for it.
func (c *Cache[K, V]) PutBehind(other, key K, value V) { c.insert(key, value, c.at[other]) }

func (c *Cache[K, V]) insert(key K, value V, behind *node[K, V]) {
	n := &node[K, V]{key: key, value: value}
	behind.link(n)
	c.at[key] = n
	c.peak = max(c.peak, len(c.at))
	c.changed(c.weigh(n))
}

// Oldest returns the least recently used entry, if there is one.
func (c *Cache[K, V]) Oldest() (key K, value V, ok bool) {
	n := c.ends.newer
	return n.key, n.value, n != c.ends
}

// DropOldest removes and returns the least recently used entry, if there is one.
func (c *Cache[K, V]) DropOldest() (key K, value V, ok bool) {
	if key, value, ok = c.Oldest(); ok {
		c.Delete(key)
	}
	return key, value, ok
}

// Delete removes key and reports whether it was there.
func (c *Cache[K, V]) Delete(key K) bool {
	n, ok := c.at[key]
	if !ok {
		return false
	}
	n.unlink()
	delete(c.at, key)
	c.changed(-c.weigh(n))
	if c.peak > leastPeak && len(c.at) < c.peak-c.peak/4 {
		at := make(map[K]*node[K, V], len(c.at))
		maps.Copy(at, c.at)
		c.at, c.peak = at, len(at)
	}
	return true
}

// leastPeak is the number of entries from which the table is copied when a quarter of them has gone: a map keeps the memory of the most
// that it has held.
const leastPeak = 64

func (c *Cache[K, V]) weigh(n *node[K, V]) int {
	if c.opt.Weigh == nil {
		return 1
	}
	return c.opt.Weigh(n.key, n.value)
}

func (c *Cache[K, V]) changed(delta int) {
	c.weight += delta
	if c.opt.Changed != nil && delta != 0 {
		c.opt.Changed(delta)
	}
}

// All iterates over the entries, most recently used first, and marks none as used. The entry at hand may be deleted meanwhile.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return c.walk(func(n *node[K, V]) *node[K, V] { return n.older })
}

// Backward is [Cache.All], least recently used first.
func (c *Cache[K, V]) Backward() iter.Seq2[K, V] {
	return c.walk(func(n *node[K, V]) *node[K, V] { return n.newer })
}

func (c *Cache[K, V]) walk(next func(*node[K, V]) *node[K, V]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for n := next(c.ends); n != c.ends; {
			after := next(n)
			if !yield(n.key, n.value) {
				return
			}
			n = after
		}
	}
}

// link puts a node behind n: it was used just before n.
func (n *node[K, V]) link(x *node[K, V]) {
	x.newer, x.older = n, n.older
	n.older.newer, n.older = x, x
}

func (n *node[K, V]) unlink() { n.newer.older, n.older.newer = n.older, n.newer }
