package redisorders

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// maxLatest bounds the orders in the stream, and so those that a replica reads ahead: of the last hours, in most places.
const maxLatest = 1 << 16

// The fields of an entry of the stream: a place, and one of the others.
const (
	fieldPlace   = "p"
	fieldOrder   = "o" // the place's order, if no entry before has one
	fieldInstead = "r" // its order from now on
	fieldForget  = "f" // the place's tenant is forgotten
)

// latest holds the orders that other replicas have put, as encoded. Safe for concurrent use.
type latest struct{ places[string] }

// take takes in an entry of the stream; one that is none of ours is left out.
func (l *latest) take(values map[string]any) {
	name, _ := values[fieldPlace].(string)
	var p place
	if len(name) != len(p.tenant)+len(p.key) {
		return
	}
	copy(p.tenant[:], name)
	copy(p.key[:], name[len(p.tenant):])
	l.mu.Lock()
	defer l.mu.Unlock()
	if order, ok := values[fieldOrder].(string); ok {
		if _, known := l.at.Get(p); !known {
			l.at.Put(p, order)
		}
	}
	if order, ok := values[fieldInstead].(string); ok {
		l.at.Put(p, order)
	}
	if _, ok := values[fieldForget]; ok {
		l.drop(p)
	}
}

// readAhead returns the order of a place that Redis did not answer for, if another replica put it before, and remembers it.
func (s *Store) readAhead(tenant string, p place) []int {
	s.mu.RLock()
	forgets := s.forgets
	s.mu.RUnlock()
	encoded, ok := s.latest.get(p)
	if !ok {
		return nil
	}
	order, err := orders.Decode(p.key, []byte(encoded))
	if err != nil {
		s.count.invalid.Add(1)
		return nil
	}
	s.count.ahead.Add(1)
	return s.keep(forgets, tenant, p.key, order)
}

// Follow reads in the background what other replicas put, from the latest that are in Redis on, and writes what was chosen
// while Redis did not answer. It ends with Close. Call it once.
func (s *Store) Follow() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.closed {
		s.running.Go(s.follow)
	}
}

func (s *Store) follow() {
	last, warned := "0", false
	for s.base.Err() == nil {
		next, err := s.readStream(last)
		if err == nil {
			last = next
			s.share()
			continue
		}
		var answer redis.Error
		switch {
		case s.base.Err() != nil:
			return
		case !errors.As(err, &answer):
			s.alone.now()
		case !warned:
			warned = true
			s.opt.Log.Warn("Redis does not let the orders of other replicas be read ahead", "error", s.redact(err))
		}
		select {
		case <-time.After(s.opt.Pause):
		case <-s.base.Done():
		}
	}
}

// readStream takes in what is in the stream behind an entry, and returns the last one. It waits half a pause for the first.
func (s *Store) readStream(last string) (string, error) {
	block := max(s.opt.Pause/2, time.Millisecond)
	ctx, cancel := context.WithTimeout(s.base, block+max(s.opt.Pause, s.opt.Budget))
	defer cancel()
	streams, err := s.client.XRead(ctx, &redis.XReadArgs{Streams: []string{s.stream(), last}, Count: 1000, Block: block}).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return last, err
	}
	for _, stream := range streams {
		for _, entry := range stream.Messages {
			s.latest.take(entry.Values)
			last = entry.ID
		}
	}
	return last, nil
}

// announce adds an entry to the stream.
func (s *Store) announce(ctx context.Context, pipe redis.Pipeliner, field string, p place, value []byte) {
	pipe.XAdd(ctx, &redis.XAddArgs{
		Stream: s.stream(), MaxLen: maxLatest, Approx: true,
		Values: []any{fieldPlace, string(p.tenant[:]) + string(p.key[:]), field, value},
	})
	pipe.PExpire(ctx, s.stream(), s.opt.TTL)
}

// retract removes the orders of a tenant from the stream, and lets the other replicas drop those that they have read ahead.
func (s *Store) retract(ctx context.Context, of place) error {
	for from := "-"; ; {
		entries, err := s.client.XRangeN(ctx, s.stream(), from, "+", 1000).Result()
		if err != nil {
			return err
		}
		var gone []string
		for _, entry := range entries {
			if name, _ := entry.Values[fieldPlace].(string); len(name) > len(of.tenant) && name[:len(of.tenant)] == string(of.tenant[:]) {
				gone = append(gone, entry.ID)
			}
		}
		if len(gone) > 0 {
			if err := s.client.XDel(ctx, s.stream(), gone...).Err(); err != nil {
				return err
			}
		}
		if len(entries) < 1000 {
			break
		}
		from = entries[len(entries)-1].ID // once more: Redis 5 knows no range without its first
	}
	pipe := s.client.TxPipeline()
	s.announce(ctx, pipe, fieldForget, of, nil)
	_, err := pipe.Exec(ctx)
	return err
}
