package redisorders

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// fetch returns a place's order from Redis and lets it live on; nil if there is none that can be used.
func (s *Store) fetch(ctx context.Context, p place) ([]int, error) {
	name := s.name(p)
	pipe := s.client.Pipeline()
	value := pipe.Get(ctx, name)
	pipe.PExpire(ctx, name, s.opt.TTL) // of no consequence if it fails
	_, _ = pipe.Exec(ctx)              // the error is in value, too
	return s.decode(p.key, value)
}

// offer stores an order if the place has none, and returns the place's, or the given one if that cannot be used.
func (s *Store) offer(ctx context.Context, p place, order []int) ([]int, error) {
	encoded := orders.Encode(p.key, order)
	pipe := s.client.TxPipeline()
	stored := pipe.SetArgs(ctx, s.name(p), encoded, redis.SetArgs{Mode: "NX", TTL: s.opt.TTL})
	value := pipe.Get(ctx, s.name(p))
	s.announce(ctx, pipe, fieldOrder, p, encoded)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return order, err
	}
	if stored.Err() == nil {
		return order, nil
	}
	first, err := s.decode(p.key, value)
	if err == nil && first == nil {
		return order, nil
	}
	return first, err
}

// decode reads a value; nil without an error if there is none, or none of this place.
func (s *Store) decode(k orders.Key, value *redis.StringCmd) ([]int, error) {
	b, err := value.Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	order, err := orders.Decode(k, b)
	if err != nil {
		s.count.invalid.Add(1)
		return nil, nil //nolint:nilerr // counted; the place has no order
	}
	return order, nil
}

// unlink removes all keys of a tenant that are there from beginning to end.
func (s *Store) unlink(ctx context.Context, p place) error {
	pattern := glob(s.tenantPrefix(p)) + "*"
	for cursor := uint64(0); ; {
		names, next, err := s.client.Scan(ctx, cursor, pattern, 1000).Result()
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(names, 1000) {
			if err := s.client.Unlink(ctx, batch...).Err(); err != nil {
				return err
			}
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// glob writes a text as the pattern that matches it alone.
func glob(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`*?[]^-\`, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
