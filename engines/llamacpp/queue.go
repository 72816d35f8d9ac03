package llamacpp

import (
	"context"
	"fmt"
	"slices"
)

// waiter is a request that no slot is free for.
type waiter struct {
	lease *lease
	want  int
	ready chan struct{} // closed when the lease is granted
}

// admit waits until a slot is free and takes it, in the order of arrival. A request that waits for a slot of its own choice
// does not hold up those behind it. The error is that of ctx.
func (e *Engine) admit(ctx context.Context, l *lease, want int) error {
	w := &waiter{lease: l, want: want, ready: make(chan struct{})}
	e.mu.Lock()
	e.waiting = append(e.waiting, w)
	e.dispatch()
	e.unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	e.mu.Lock()
	i := slices.Index(e.waiting, w)
	if i >= 0 {
		e.waiting = slices.Delete(e.waiting, i, i+1)
	}
	e.mu.Unlock()
	if i < 0 { // granted meanwhile
		e.free(l)
	}
	return fmt.Errorf("while it waited for a slot: %w", ended(ctx))
}

// free ends a lease whose request was not sent.
func (e *Engine) free(l *lease) {
	e.mu.Lock()
	defer e.unlock()
	e.book.release(l)
	e.dispatch()
}

// dispatch gives free slots to those who wait. It is called with mu held.
func (e *Engine) dispatch() {
	e.waiting = slices.DeleteFunc(e.waiting, func(w *waiter) bool {
		if !e.book.grant(w.lease, w.want) {
			return false
		}
		close(w.ready)
		return true
	})
}
