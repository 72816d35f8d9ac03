package redisorders

import (
	"sync/atomic"
	"time"
)

// Stats count since Open.
type Stats struct {
	Local    uint64 // Gets and Puts that the memory answered
	Hits     uint64 // Gets that Redis answered with an order
	Misses   uint64 // Gets that Redis answered with none
	Yielded  uint64 // Puts for which Redis had another order
	Ahead    uint64 // Gets that Redis did not answer, but whose order had been read ahead
	Alone    uint64 // Puts that Redis did not answer, for which the documents stay as they came
	Invalid  uint64 // values in Redis that were not an order of their place
	Failures uint64 // operations that failed or took longer than the budget
	Skipped  uint64 // operations that were not tried: the breaker was open, or too many were under way
	Latest   int    // orders of replicas, its own too, that were read ahead and are held
	Open     bool   // the breaker: Redis is not asked now
	Latency  Latency
}

// Latency is a histogram of how long Redis took for what it answered, late answers included.
type Latency struct {
	Count   uint64
	Sum     time.Duration
	Buckets []Bucket // ascending; what took longer than the last is only in Count
}

// Bucket is the number of operations that took at most UpTo.
type Bucket struct {
	UpTo  time.Duration
	Count uint64
}

var bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, time.Second,
}

// counters are the Stats as they grow.
type counters struct {
	local, hits, misses, yielded, ahead, alone, invalid, failures, skipped atomic.Uint64

	count   atomic.Uint64
	sum     atomic.Int64               // nanoseconds
	buckets [len(bounds)]atomic.Uint64 // not cumulative
}

func (c *counters) took(d time.Duration) {
	for i, b := range bounds {
		if d <= b {
			c.buckets[i].Add(1)
			break
		}
	}
	c.count.Add(1)
	c.sum.Add(int64(d))
}

// Stats returns what was counted. Numbers of operations that are under way may not yet agree with each other.
func (s *Store) Stats() Stats {
	c := &s.count
	out := Stats{
		Local: c.local.Load(), Hits: c.hits.Load(), Misses: c.misses.Load(), Yielded: c.yielded.Load(),
		Latest: s.latest.len(), Ahead: c.ahead.Load(), Alone: c.alone.Load(),
		Invalid: c.invalid.Load(), Failures: c.failures.Load(), Skipped: c.skipped.Load(), Open: s.breaker.isOpen(),
	}
	out.Latency.Buckets = make([]Bucket, len(bounds))
	var sum uint64
	for i, b := range bounds {
		sum += c.buckets[i].Load()
		out.Latency.Buckets[i] = Bucket{UpTo: b, Count: sum}
	}
	out.Latency.Count, out.Latency.Sum = c.count.Load(), time.Duration(c.sum.Load())
	return out
}
