// Package memories keeps the stores of a server's tenants, each a SQLite file of its own, so that nothing can cross from one
// to another and forgetting a tenant leaves nothing behind.
package memories

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

// Folder is a folder of stores. Safe for concurrent use.
type Folder struct {
	dir     string
	opts    Options
	reserve *reserve
	filler  *filler // nil: there is nothing to fill in
	warned  sync.Once

	mu     sync.Mutex
	closed bool             // guarded by mu
	open   map[string]*book // guarded by mu; by tenant
	clock  int              // guarded by mu; counts uses
}

// Options are for [Open]; the zero value is the usual one.
type Options struct {
	// Extractor decides what is remembered; nil: messages as they are.
	Extractor memory.Extractor
	// Embedder is that of all stores; nil: that of a memory.Config without one.
	Embedder embed.Embedder
	// ByWords has stores whose vectors another embedder has made be searched by words, see memory.Config.ByWords; the first time
	// is logged.
	ByWords bool
	// Arrived is closed when the embedder can embed. Memories that were stored before have no vectors: from then on each
	// store that is open, or is opened, is given them once, one store after the other. nil: none is.
	Arrived <-chan struct{}
	// Indexes holds what searches of all stores need in memory; nil: each store has its own.
	Indexes *memory.Indexes
	// Open bounds the stores that are open at once, 0: 64; those in use are never closed.
	Open int
	// Log gets what goes wrong in the background; nil: slog.Default.
	Log *slog.Logger

	fill func(context.Context, *guarded) (int, error) // nil: (*guarded).Fill
}

// book is an open store.
type book struct {
	store  *guarded
	ready  chan struct{} // closed when store or err is set
	err    error
	users  int
	last   int // when it was last used
	loaded bool
	filled bool // or is being filled
	closed bool
}

// ErrClosed: the server is about to end.
var ErrClosed = errors.New("memories: closed")

// ErrBusy: as many tenants as may be are using their stores right now.
var ErrBusy = errors.New("memories: too many tenants at once")

// Open returns the stores in a folder, which is made if it is not there.
func Open(dir string, o Options) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("memories: %w", err)
	}
	if o.Open <= 0 {
		o.Open = 64
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.fill == nil {
		o.fill = func(ctx context.Context, g *guarded) (int, error) { return g.Fill(ctx) }
	}
	f := &Folder{dir: dir, opts: o, reserve: newReserve(dir), open: map[string]*book{}}
	if o.Arrived != nil {
		f.filler = startFiller(f)
	}
	return f, nil
}

// Use returns a tenant's store, which stays open until release is called.
func (f *Folder) Use(ctx context.Context, tenant string) (store memory.Store, release func(), err error) {
	b, first, err := f.take(tenant)
	if err != nil {
		return nil, nil, err
	}
	if first {
		b.store, b.err = f.load(tenant)
		close(b.ready)
		f.loaded(b)
	}
	select {
	case <-b.ready:
	case <-ctx.Done():
		f.leave(tenant, b)
		return nil, nil, ctx.Err()
	}
	if b.err != nil {
		f.leave(tenant, b)
		return nil, nil, b.err
	}
	return b.store, sync.OnceFunc(func() { f.leave(tenant, b) }), nil
}

// take counts a user of a tenant's store; first: the caller is to open it.
func (f *Folder) take(tenant string) (b *book, first bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, false, ErrClosed
	}
	f.clock++
	b, ok := f.open[tenant]
	if !ok {
		if len(f.open) >= f.opts.Open && !f.closeIdle() {
			return nil, false, ErrBusy
		}
		b = &book{ready: make(chan struct{})}
		f.open[tenant] = b
	}
	b.users++
	b.last = f.clock
	return b, !ok, nil
}

// loaded says that a store is open.
func (f *Folder) loaded(b *book) {
	f.mu.Lock()
	b.loaded = b.err == nil
	f.mu.Unlock()
	f.filler.opened()
}

// closeIdle closes the store that has been unused for longest, and reports whether there was one. f.mu is held.
func (f *Folder) closeIdle() bool {
	oldest := ""
	var idle *book
	for tenant, b := range f.open {
		if b.users == 0 && (idle == nil || b.last < idle.last) {
			oldest, idle = tenant, b
		}
	}
	if idle == nil {
		return false
	}
	delete(f.open, oldest)
	_ = idle.store.Close() // what was acknowledged is on the disk
	return true
}

func (f *Folder) leave(tenant string, b *book) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b.users--
	switch {
	case b.users > 0:
	case b.err != nil: // the next to ask tries again
		if f.open[tenant] == b {
			delete(f.open, tenant)
		}
	case f.closed && !b.closed:
		b.closed = true
		_ = b.store.Close()
	}
}

func (f *Folder) load(tenant string) (*guarded, error) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience) // others may wait for it, too
	defer cancel()
	path := filepath.Join(f.dir, FileOf(tenant))
	backend, err := sqlite.Open(ctx, path, sqlite.Options{})
	if _, missing := os.Stat(path); errors.Is(err, memory.ErrFull) && missing == nil { // to read needs some room, too
		err = f.reserve.spend(func() (err error) {
			backend, err = sqlite.Open(ctx, path, sqlite.Options{})
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	cfg := memory.Config{Extractor: f.opts.Extractor, Embedder: f.opts.Embedder, Indexes: f.opts.Indexes}
	if f.opts.ByWords {
		cfg.ByWords = f.warn
	}
	store, err := memory.New(backend, cfg)
	if err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	return &guarded{Local: store, backend: backend, reserve: f.reserve}, nil
}

// warn logs, once, that another embedder has made the vectors of a store.
func (f *Folder) warn(err error) {
	f.warned.Do(func() {
		f.opts.Log.Warn("memories are found by words where another embedder has made their vectors: "+
			"ragpilot memory reembed makes them anew, also while this runs",
			"folder", f.dir, "error", err)
	})
}

// FileOf returns the name of a tenant's file: a hash, as tenants may be named anything.
func FileOf(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return hex.EncodeToString(sum[:16]) + ".db"
}

// Forget removes everything of a tenant's, and reports whether there was a file.
func (f *Folder) Forget(ctx context.Context, tenant string) (known bool, err error) {
	if _, err := os.Stat(filepath.Join(f.dir, FileOf(tenant))); err != nil {
		return false, nil // nothing was ever kept
	}
	store, release, err := f.Use(ctx, tenant)
	if err != nil {
		return true, err
	}
	defer release()
	return true, store.Reset(ctx)
}

// Close closes all stores; those in use when their users leave.
func (f *Folder) Close() error {
	f.filler.close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	var errs []error
	for tenant, b := range f.open {
		if b.users == 0 {
			b.closed = true
			errs = append(errs, b.store.Close())
		}
		delete(f.open, tenant)
	}
	return errors.Join(errs...)
}
