package redisorders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// Store is an orders.Store. Get and Put are safe for concurrent use, wait for the budget at most, and work after
// Close as the memory alone does.
type Store struct {
	opt      Options
	client   *redis.Client
	password string
	memory   *orders.Memory
	breaker  *breaker
	latest   latest
	alone    alone
	count    counters

	underWay   chan struct{} // holds one for each operation in the background
	base       context.Context
	stop       context.CancelFunc
	running    sync.WaitGroup
	forgetting sync.Mutex // one Forget at a time

	mu      sync.RWMutex
	closed  bool   // nothing is started any more
	forgets uint64 // so far; what was asked before one is not remembered after it
}

var _ orders.Store = (*Store)(nil)

// Get returns a place's order from the memory, else from Redis if it answers within the budget, else what was read ahead.
func (s *Store) Get(ctx context.Context, tenant string, k orders.Key) (order []int, ok bool) {
	if order, ok = s.memory.Get(ctx, tenant, k); ok {
		s.count.local.Add(1)
		return order, true
	}
	p := placeOf(tenant, k)
	order, ok, _ = s.ask(ctx, func(ctx context.Context, forgets uint64) ([]int, error) {
		order, err := s.fetch(ctx, p)
		if err != nil || order == nil {
			return nil, err
		}
		return s.keep(forgets, tenant, k, order), nil
	})
	switch {
	case !ok: // it may have come in the meantime
		if order, ok = s.memory.Get(ctx, tenant, k); ok {
			return order, true
		}
		order = s.readAhead(tenant, p)
		return order, order != nil
	case order == nil:
		s.count.misses.Add(1)
		return nil, false
	}
	s.count.hits.Add(1)
	return order, true
}

// Put remembers an order in Redis, if that answers within the budget, and in the memory. If it does not, or did not a
// moment ago, the place's order is that in which the documents came: all replicas choose it without asking.
func (s *Store) Put(ctx context.Context, tenant string, k orders.Key, order []int) (winner []int) {
	if !orders.Valid(order) {
		return nil
	}
	if winner, ok := s.memory.Get(ctx, tenant, k); ok {
		s.count.local.Add(1)
		return sameLength(winner, order)
	}
	mine := slices.Clone(order) // the caller may change its own while Redis is still asked
	if s.breaker.failing() || s.alone.lately(settling*s.opt.Pause) {
		mine = asCame(len(order))
	}
	p := placeOf(tenant, k)
	winner, ok, late := s.ask(ctx, func(ctx context.Context, forgets uint64) ([]int, error) {
		first, err := s.offer(ctx, p, mine)
		if err != nil {
			return nil, err
		}
		return s.keep(forgets, tenant, k, first), nil
	})
	switch {
	case ok && !slices.Equal(winner, order):
		s.count.yielded.Add(1)
	case !ok && ctx.Err() != nil: // nothing will be forwarded
		winner = s.memory.Put(ctx, tenant, k, order)
	case !ok:
		winner = s.putAlone(ctx, tenant, p, mine)
		s.shareAfter(late)
	}
	return sameLength(winner, order)
}

// Connect opens a connection, so that the first request need not wait for that within its budget. It waits at most a
// second; that Redis cannot be reached is logged, and no error: the store is asked again as if nothing had happened.
func (s *Store) Connect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.client.Ping(ctx).Err(); err != nil {
		s.opt.Log.Warn("Redis does not answer yet; until it does, documents stay as they came", "error", s.redact(err))
	}
}

// sameLength returns the winner, or order if only that can be used.
func sameLength(winner, order []int) []int {
	if len(winner) != len(order) {
		return slices.Clone(order)
	}
	return winner
}

// keep puts what Redis has answered into the memory, if the tenant was not forgotten since it was asked, and
// returns what the memory says: its first answer stays.
func (s *Store) keep(forgets uint64, tenant string, k orders.Key, order []int) []int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.forgets != forgets {
		return order
	}
	return s.memory.Put(s.base, tenant, k, order)
}

// Forget drops a tenant's orders from the memory, whatever becomes of Redis, and from Redis. It waits for operations
// under way, so that none brings back what is forgotten, and for Redis as long as ctx lets it, at most 30 s.
func (s *Store) Forget(ctx context.Context, tenant string) error {
	ctx, cancel := context.WithTimeout(ctx, forgetPatience)
	defer cancel()
	s.forgetting.Lock()
	defer s.forgetting.Unlock()
	defer s.forgetLocally(tenant) // what was asked while Redis was being cleaned
	s.forgetLocally(tenant)
	if err := s.quiesce(ctx); err != nil {
		return fmt.Errorf("redisorders: forget: %w", err)
	}
	p := placeOf(tenant, orders.Key{})
	if err := errors.Join(s.unlink(ctx, p), s.retract(ctx, p)); err != nil {
		return fmt.Errorf("redisorders: forget: %w", s.redact(err))
	}
	return nil
}

func (s *Store) forgetLocally(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgets++
	_ = s.memory.Forget(s.base, tenant)
	p := placeOf(tenant, orders.Key{})
	s.alone.forget(p)
	s.latest.forget(p)
}

// Close ends what is under way and waits for it, for about a second at most.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	err := s.client.Close()
	s.running.Wait()
	if err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("redisorders: %w", s.redact(err))
	}
	return nil
}

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
