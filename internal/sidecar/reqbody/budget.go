package reqbody

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrFull is returned by [Share.Hold] if other bodies take all the memory that there is for bodies.
var ErrFull = errors.New("too many bytes of request bodies are in memory")

// Budget bounds the bytes that bodies take at a time. A body that asks for more than there is waits; those that came
// first are served first. If all that have begun wait for each other, the last one is given up, so that the first ones
// come to their end. Safe for concurrent use.
type Budget struct {
	limit func() int64
	wait  time.Duration

	mu      sync.Mutex
	used    int64     // guarded by mu
	ages    uint64    // guarded by mu
	holders int       // shares that hold bytes; guarded by mu
	stuck   int       // those of them that wait; guarded by mu
	waiting []*waiter // oldest share first; guarded by mu
}

type waiter struct {
	share *Share
	n     int64
	done  chan struct{} // closed when n was added to the share, or when it was given up
	err   error         // set before
}

// NewBudget returns a Budget of limit bytes, which may change; wait is how long a body may wait for others to end.
func NewBudget(limit func() int64, wait time.Duration) *Budget {
	return &Budget{limit: limit, wait: wait}
}

// Used returns the bytes that bodies take now.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Open returns an empty share for one body.
func (b *Budget) Open() *Share { return &Share{budget: b} }

// Share is what one body takes of a Budget. It is for one goroutine, but Release may be called by any.
type Share struct {
	budget *Budget
	age    uint64 // 0: has not asked yet; guarded by budget.mu
	held   int64  // guarded by budget.mu
}

// Hold takes n more bytes. If they are not there in the time to wait, the error is [ErrFull] and the share is given back;
// if ctx ends first, it is that one's error.
func (s *Share) Hold(ctx context.Context, n int) error {
	b := s.budget
	w := b.enter(s, int64(n))
	if w == nil {
		return nil
	}
	timer := time.NewTimer(b.wait)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
		b.leave(w, ErrFull)
	case <-ctx.Done():
		b.leave(w, ctx.Err())
	}
	return w.err
}

// Release gives all bytes back. More than once is once.
func (s *Share) Release() {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free(s)
	b.settle()
}

// enter takes n bytes, or returns a waiter if there are not enough or an older share waits.
func (b *Budget) enter(s *Share, n int64) *waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.age == 0 {
		b.ages++
		s.age = b.ages
	}
	if (len(b.waiting) == 0 || b.waiting[0].share.age > s.age) && b.fits(s, n) {
		b.take(s, n)
		return nil
	}
	w := &waiter{share: s, n: n, done: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(b.waiting, s.age, func(w *waiter, age uint64) int { return cmp.Compare(w.share.age, age) })
	b.waiting = slices.Insert(b.waiting, at, w)
	if s.held > 0 {
		b.stuck++
	}
	b.settle()
	return w
}

// leave gives a waiter up, unless it is too late.
func (b *Budget) leave(w *waiter, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(b.waiting, w); at >= 0 {
		b.give(at, err)
		b.settle() // those behind it may need less
	}
}

// settle serves the queue as far as there is room. If no share is left that could give bytes back, the youngest of those that
// wait and hold some has to. The lock is held.
func (b *Budget) settle() {
	for len(b.waiting) > 0 {
		first := b.waiting[0]
		switch {
		case b.fits(first.share, first.n):
			b.give(0, nil)
			b.take(first.share, first.n)
		case b.holders > b.stuck:
			return
		default:
			last := len(b.waiting) - 1
			for b.waiting[last].share.held == 0 {
				last--
			}
			b.give(last, ErrFull)
		}
	}
}

// give ends the waiting of one. The lock is held.
func (b *Budget) give(at int, err error) {
	w := b.waiting[at]
	b.waiting = slices.Delete(b.waiting, at, at+1)
	if w.share.held > 0 {
		b.stuck--
	}
	if w.err = err; err != nil {
		b.free(w.share)
	}
	close(w.done)
}

// fits reports whether a share may have n more bytes. One that is alone may have any number: it is bounded by what a body
// may be, and would wait in vain. The lock is held.
func (b *Budget) fits(s *Share, n int64) bool {
	return b.used+n <= b.limit() || b.used == s.held
}

func (b *Budget) take(s *Share, n int64) {
	if s.held == 0 {
		b.holders++
	}
	b.used += n
	s.held += n
}

func (b *Budget) free(s *Share) {
	if s.held > 0 {
		b.holders--
	}
	b.used -= s.held
	s.held = 0
}
