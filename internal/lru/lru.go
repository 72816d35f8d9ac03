// Package lru is a map of bounded size that forgets what was least recently used.
package lru

import (
	"container/list"
	"iter"
)

// Cache maps K to V. Not safe for concurrent use.
type Cache[K comparable, V any] struct {
	limit int
	order *list.List // of entry[K, V], most recently used first
	at    map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New returns a Cache of at most limit entries (at least 1).
func New[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{limit: max(limit, 1), order: list.New(), at: map[K]*list.Element{}}
}

// Len returns the number of entries.
func (c *Cache[K, V]) Len() int { return len(c.at) }

// Get returns the value of key and marks it as used.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	e, ok := c.at[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(entry[K, V]).value, true
}

// Has reports whether there is a value of key, which does not count as a use of it.
func (c *Cache[K, V]) Has(key K) bool {
	_, ok := c.at[key]
	return ok
}

// Put sets the value of key and marks it as used; the least recently used entry goes if there are too many, and is
// returned then.
func (c *Cache[K, V]) Put(key K, value V) (goneKey K, gone V, full bool) {
	if e, ok := c.at[key]; ok {
		e.Value = entry[K, V]{key, value}
		c.order.MoveToFront(e)
		return goneKey, gone, false
	}
	c.at[key] = c.order.PushFront(entry[K, V]{key, value})
	if len(c.at) <= c.limit {
		return goneKey, gone, false
	}
	return c.DropOldest()
}

// DropOldest removes and returns the least recently used entry, if there is one.
func (c *Cache[K, V]) DropOldest() (key K, value V, ok bool) {
	last := c.order.Back()
	if last == nil {
		return key, value, false
	}
	x := c.order.Remove(last).(entry[K, V])
	delete(c.at, x.key)
	return x.key, x.value, true
}

// Delete removes key.
func (c *Cache[K, V]) Delete(key K) {
	if e, ok := c.at[key]; ok {
		c.order.Remove(e)
		delete(c.at, key)
	}
}

// All goes through the entries, most recently used first, and marks none as used. The cache must not be changed
// meanwhile.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for e := c.order.Front(); e != nil; e = e.Next() {
			if x := e.Value.(entry[K, V]); !yield(x.key, x.value) {
				return
			}
		}
	}
}
