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

// ask runs an operation and waits for it until the budget is used up or ctx ends. ok is false if there is no answer; late
// has it later, if the operation is still under way when the budget is used up.
func (s *Store) ask(ctx context.Context, op operation) (order []int, ok bool, late <-chan answer) {
	if ctx.Err() != nil {
		return nil, false, nil
	}
	ok, probe := s.breaker.allow()
	if !ok {
		s.count.skipped.Add(1)
		return nil, false, nil
	}
	result := s.start(op)
	if result == nil {
		s.breaker.report(probe, unknown)
		s.count.skipped.Add(1)
		return nil, false, nil
	}
	budget := time.NewTimer(s.opt.Budget)
	defer budget.Stop()
	var err error
	select {
	case a := <-result:
		if a.err == nil {
			s.report(probe, answered, nil)
			return a.order, true, nil
		}
		err = s.redact(a.err)
	case <-budget.C:
		late, err = result, fmt.Errorf("no answer within %s", s.opt.Budget)
	case <-ctx.Done():
		s.breaker.report(probe, unknown)
		return nil, false, nil
	}
	s.count.failures.Add(1)
	s.report(probe, failed, err)
	return nil, false, late
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
			s.count.answers.Add(1)
			s.opt.Took(time.Since(begun))
		}
		result <- answer{order, err}
	})
	return result
}

// report passes an outcome to the breaker, and logs if that has opened or closed.
func (s *Store) report(probe bool, o outcome, err error) {
	turned := s.breaker.report(probe, o)
	if o == failed && s.breaker.isOpen() {
		s.alone.now()
	}
	switch {
	case turned && o == failed:
		s.opt.Log.Warn("Redis does not answer; documents of new conversations stay as they came", "error", err, "next try", s.opt.Pause)
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
