package cloudcache

import (
	"time"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/base/queue"
)

// entries are prefixes of prompts until their times end. If there are too many, the one that ends first goes.
type entries[V any] struct {
	limit int
	gone  func(*entry[V]) // is called for each that goes
	at    map[key]*entry[V]
	soon  *queue.Queue[*entry[V]] // the same, the one that ends first on top
}

// entry is a prefix of a prompt, and what is known of it.
type entry[V any] struct {
	key   key
	value V
	upTo  int // tokens from the start of the prompt
	ttl   time.Duration
	ends  time.Time
	place int // in the queue
}

// key names a prefix.
type key struct {
	tenant string
	prefix xxh3.Uint128
}

func newEntries[V any](limit int, gone func(*entry[V])) entries[V] {
	return entries[V]{
		limit: limit, gone: gone, at: map[key]*entry[V]{},
		soon: queue.New(func(a, b *entry[V]) bool { return a.ends.Before(b.ends) }, func(e *entry[V]) *int { return &e.place }),
	}
}

func (x *entries[V]) add(e *entry[V]) {
	for x.soon.Len() >= x.limit {
		x.drop(x.soon.Top())
	}
	x.at[e.key] = e
	x.soon.Push(e)
}

// refresh lets an entry stay for its time from at on.
func (x *entries[V]) refresh(e *entry[V], at time.Time) {
	if ends := at.Add(e.ttl); ends.After(e.ends) {
		e.ends = ends
		x.soon.Moved(e)
	}
}

func (x *entries[V]) drop(e *entry[V]) {
	x.soon.Remove(e)
	delete(x.at, e.key)
	x.gone(e)
}

// sweep drops what has ended.
func (x *entries[V]) sweep(now time.Time) {
	for x.soon.Len() > 0 && !x.soon.Top().ends.After(now) {
		x.drop(x.soon.Top())
	}
}
