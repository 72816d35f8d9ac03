package memories

import (
	"context"
	"errors"

	"github.com/ragpilot/ragpilot/memory"
)

// filler gives vectors to what was stored before the embedder was ready, one store after the other, in a goroutine of its
// own.
type filler struct {
	folder *Folder
	stop   context.CancelFunc
	done   chan struct{}
	wake   chan struct{} // has room for one: a store was opened
}

func startFiller(f *Folder) *filler {
	ctx, stop := context.WithCancel(context.Background())
	l := &filler{folder: f, stop: stop, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	go func() {
		defer close(l.done)
		l.run(ctx)
	}()
	return l
}

// opened says that there is a store to be looked at. l may be nil.
func (l *filler) opened() {
	if l == nil {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *filler) run(ctx context.Context) {
	select {
	case <-l.folder.opts.Arrived:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		tenant, b := l.folder.takeUnfilled()
		if b == nil {
			select {
			case <-l.wake:
			case <-ctx.Done():
			}
			continue
		}
		switch _, err := l.folder.opts.fill(ctx, b.store); {
		case err == nil || ctx.Err() != nil:
		case l.folder.opts.ByWords && errors.Is(err, memory.ErrEmbedder):
			l.folder.warn(err)
		default:
			l.folder.opts.Log.Error("memories were not given vectors", "store", FileOf(tenant), "error", err)
		}
		l.folder.leave(tenant, b)
	}
}

// takeUnfilled counts a user of an open store that was not filled since it was opened; nil: there is none.
func (f *Folder) takeUnfilled() (tenant string, b *book) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for tenant, b := range f.open {
		if b.loaded && !b.filled {
			b.filled = true
			b.users++
			return tenant, b
		}
	}
	return "", nil
}

// close ends it. l may be nil.
func (l *filler) close() {
	if l == nil {
		return
	}
	l.stop()
	<-l.done
}
