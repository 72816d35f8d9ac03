package memories

import (
	"context"
	"errors"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

// guarded is a store that can be read, and removed from, while its disk is full.
type guarded struct {
	*memory.Local
	backend *sqlite.Backend
	reserve *reserve
}

// Add stores nothing while the reserve is too small.
func (g *guarded) Add(ctx context.Context, scope memory.Scope, messages []memory.Message, opts memory.AddOptions) ([]memory.Change, error) {
	if err := g.reserve.ready(); err != nil {
		return nil, err
	}
	return g.Local.Add(ctx, scope, messages, opts)
}

// Update changes nothing while the reserve is too small.
func (g *guarded) Update(ctx context.Context, id string, change memory.Update) (memory.Memory, error) {
	if err := g.reserve.ready(); err != nil {
		return memory.Memory{}, err
	}
	return g.Local.Update(ctx, id, change)
}

// Fill stores nothing while the reserve is too small.
func (g *guarded) Fill(ctx context.Context) (int, error) {
	if err := g.reserve.ready(); err != nil {
		return 0, err
	}
	return g.Local.Fill(ctx)
}

// Delete removes a memory, in the room of the reserve if there is no other.
func (g *guarded) Delete(ctx context.Context, id string, opts memory.DeleteOptions) error {
	return g.remove(ctx, func() error { return g.Local.Delete(ctx, id, opts) })
}

// DeleteAll removes what the scope covers.
func (g *guarded) DeleteAll(ctx context.Context, scope memory.Scope, opts memory.DeleteOptions) (removed int, err error) {
	err = g.remove(ctx, func() error {
		n, err := g.Local.DeleteAll(ctx, scope, opts)
		removed += n
		return err
	})
	return removed, err
}

// Reset removes everything.
func (g *guarded) Reset(ctx context.Context) error {
	return g.remove(ctx, func() error { return g.Local.Reset(ctx) })
}

// remove runs f, and once more in the room of the reserve if it needs that.
func (g *guarded) remove(ctx context.Context, f func() error) error {
	err := f()
	if !errors.Is(err, memory.ErrFull) {
		return err
	}
	return g.reserve.spend(func() error {
		if !errors.Is(err, memory.ErrNotErased) {
			return f()
		}
		return g.backend.Change(ctx, func(memory.Tx) error { return nil }) // stored; what it removed is erased now
	})
}
