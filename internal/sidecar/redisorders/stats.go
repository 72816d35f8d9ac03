package redisorders

import "sync/atomic"

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
	Answers  uint64 // of Redis, late ones included
}

// counters are the Stats as they grow.
type counters struct {
	local, hits, misses, yielded, ahead, alone, invalid, failures, skipped, answers atomic.Uint64
}

// Stats returns what was counted. Numbers of operations that are under way may not yet agree with each other.
func (s *Store) Stats() Stats {
	c := &s.count
	return Stats{
		Local: c.local.Load(), Hits: c.hits.Load(), Misses: c.misses.Load(), Yielded: c.yielded.Load(),
		Latest: s.latest.len(), Ahead: c.ahead.Load(), Alone: c.alone.Load(),
		Invalid: c.invalid.Load(), Failures: c.failures.Load(), Skipped: c.skipped.Load(), Open: s.breaker.isOpen(), Answers: c.answers.Load(),
	}
}
