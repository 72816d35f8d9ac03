package redisorders

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// alone holds what was chosen while Redis did not answer, until Redis knows it. Safe for concurrent use.
type alone struct {
	places[put]
	last time.Time // when Redis was found not to answer; guarded by mu
}

// put is an order that was used without an answer of Redis, as encoded.
type put struct {
	sent    []byte
	offered []byte // what Redis was asked to store, and may still do
}

// shareAtOnce is the number of places that are written in one round trip.
const shareAtOnce = 100

// settling is for how many pauses after Redis did not answer new orders are chosen alone. Another replica finds out within
// one pause that Redis answers again, and then writes what it chose alone.
const settling = 3

// now notes that Redis does not answer.
func (a *alone) now() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = time.Now()
}

// lately reports whether Redis did not answer some time within d. Orders that other replicas chose meanwhile may not be there yet.
func (a *alone) lately(d time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.last.IsZero() && time.Since(a.last) < d
}

// some returns up to n places and what was chosen for them.
func (a *alone) some(n int) (list []place, puts []put) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p, x := range a.at.All() {
		if len(list) == n {
			break
		}
		list, puts = append(list, p), append(puts, x)
	}
	return list, puts
}

func (a *alone) remove(list []place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range list {
		a.at.Delete(p)
	}
}

// putAlone returns the order of a place for which Redis did not answer: one that was read ahead, else
// that in which the documents came.
func (s *Store) putAlone(ctx context.Context, tenant string, p place, offered []int) []int {
	if order := s.readAhead(tenant, p); len(order) == len(offered) {
		return order
	}
	order := asCame(len(offered))
	winner := s.memory.Put(ctx, tenant, p.key, order) // an answer may have come in the meantime
	if slices.Equal(winner, order) {
		s.count.alone.Add(1)
		s.alone.put(p, put{sent: orders.Encode(p.key, order), offered: orders.Encode(p.key, offered)})
	}
	return winner
}

// share writes to Redis what was chosen alone. It stops where Redis does not answer.
func (s *Store) share() {
	for {
		left := false
		result := s.start(func(ctx context.Context, _ uint64) ([]int, error) {
			places, puts := s.alone.some(shareAtOnce)
			if len(places) == 0 {
				return nil, nil
			}
			if err := s.write(ctx, places, puts); err != nil {
				return nil, err
			}
			s.alone.remove(places)
			left = true
			return nil, nil
		})
		if result == nil {
			return
		}
		if a := <-result; a.err != nil || !left {
			return
		}
	}
}

// shareAfter writes what was chosen alone as soon as Redis has answered late: by then it may have another order.
func (s *Store) shareAfter(late <-chan answer) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if late == nil || s.closed {
		return
	}
	s.running.Go(func() {
		if a := <-late; a.err == nil {
			s.share()
		}
	})
}

// write stores orders for places that have none, or only the one that was offered in vain. An order of another replica stays.
func (s *Store) write(ctx context.Context, places []place, puts []put) error {
	pipe := s.client.TxPipeline()
	values := make([]*redis.StringCmd, len(places))
	for i, p := range places {
		pipe.SetArgs(ctx, s.name(p), puts[i].sent, redis.SetArgs{Mode: "NX", TTL: s.opt.TTL})
		values[i] = pipe.Get(ctx, s.name(p))
		s.announce(ctx, pipe, fieldOrder, p, puts[i].sent)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	pipe = s.client.TxPipeline()
	for i, p := range places {
		there, err := values[i].Bytes()
		if err == nil && bytes.Equal(there, puts[i].offered) && !bytes.Equal(there, puts[i].sent) {
			pipe.Set(ctx, s.name(p), puts[i].sent, s.opt.TTL)
			s.announce(ctx, pipe, fieldInstead, p, puts[i].sent)
		}
	}
	if pipe.Len() == 0 {
		return nil
	}
	_, err := pipe.Exec(ctx)
	return err
}
