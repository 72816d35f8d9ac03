package redisorders

import (
	"context"
	"fmt"
	"time"
)

// operation asks Redis something; a nil order is an answer, too. forgets is what it was when it began.
type operation func(ctx context.Context, forgets uint64) (order []int, err error)

// answer is how an operation ended.
type answer struct {
	order []int
	err   error
}

// ask runs an operation and waits for it until the budget is used up or ctx ends. ok is false if there is no answer; the
// operation may still be under way then.
func (s *Store) ask(ctx context.Context, op operation) (order []int, ok bool) {
	if ctx.Err() != nil {
		return nil, false
	}
	ok, probe := s.breaker.allow()
	if !ok {
		s.count.skipped.Add(1)
		return nil, false
	}
	result := s.start(op)
	if result == nil {
		s.breaker.report(probe, unknown)
		s.count.skipped.Add(1)
		return nil, false
	}
	budget := time.NewTimer(s.opt.Budget)
	defer budget.Stop()
	var err error
	select {
	case a := <-result:
		if a.err == nil {
			s.report(probe, answered, nil)
			return a.order, true
		}
		err = s.redact(a.err)
	case <-budget.C:
		err = fmt.Errorf("no answer within %s", s.opt.Budget)
	case <-ctx.Done():
		s.breaker.report(probe, unknown)
		return nil, false
	}
	s.count.failures.Add(1)
	s.report(probe, failed, err)
	return nil, false
}

// start runs an operation in the background. It returns nil if too many are under way, or after Close.
func (s *Store) start(op operation) <-chan answer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil
	}
	select {
	case s.underWay <- struct{}{}:
	default:
		return nil
	}
	result, forgets := make(chan answer, 1), s.forgets
	s.running.Go(func() {
		defer func() { <-s.underWay }()
		ctx, cancel := context.WithTimeout(s.base, s.opt.patience())
		defer cancel()
		begun := time.Now()
		order, err := op(ctx, forgets)
		if err == nil {
			s.count.took(time.Since(begun))
		}
		result <- answer{order, err}
	})
	return result
}

// report tells the breaker, and people if that has turned.
func (s *Store) report(probe bool, o outcome, err error) {
	switch turned := s.breaker.report(probe, o); {
	case turned && o == failed:
		s.opt.Log.Warn("Redis does not answer; the order of documents is chosen without it", "error", err, "next try", s.opt.Pause)
	case turned:
		s.opt.Log.Info("Redis answers again")
	}
}

// quiesce waits until all operations that are under way have ended. Others are skipped meanwhile.
func (s *Store) quiesce(ctx context.Context) error {
	held := 0
	defer func() {
		for range held {
			<-s.underWay
		}
	}()
	for held < cap(s.underWay) {
		select {
		case s.underWay <- struct{}{}:
			held++
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
