package memory

import (
	"context"
	"sync"
)

// turnstile lets one caller at a time through for each scope. It holds entries for scopes in use only.
type turnstile struct {
	mu    sync.Mutex
	gates map[Scope]*gate // guarded by mu
}

type gate struct {
	free    chan struct{} // holds one token while no caller is inside
	waiting int           // callers inside or in front; guarded by turnstile.mu
}

func newTurnstile() *turnstile { return &turnstile{gates: map[Scope]*gate{}} }

// enter waits until the scope is free and returns what leaves it again, or ctx's error.
func (t *turnstile) enter(ctx context.Context, scope Scope) (leave func(), err error) {
	t.mu.Lock()
	g := t.gates[scope]
	if g == nil {
		g = &gate{free: make(chan struct{}, 1)}
		g.free <- struct{}{}
		t.gates[scope] = g
	}
	g.waiting++
	t.mu.Unlock()
	select {
	case <-g.free:
		return func() {
			g.free <- struct{}{}
			t.forget(scope, g)
		}, nil
	case <-ctx.Done():
		t.forget(scope, g)
		return nil, ctx.Err()
	}
}

func (t *turnstile) forget(scope Scope, g *gate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g.waiting--; g.waiting == 0 {
		delete(t.gates, scope)
	}
}
