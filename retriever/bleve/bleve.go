package bleve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// Index searches the blocks of a folder by BM25. It changes only by [Index.Refresh]. Its methods are safe for concurrent
// use.
type Index struct {
	core *core
	opts Options
	open func() (fs.FS, func() error, error) // the files, and how to let go of them

	refreshing sync.Mutex
	files      manifest // guarded by refreshing
	changes    Changes  // of Open or New; read-only

	mu      sync.Mutex
	skipped []Skipped // guarded by mu
	blocks  int       // guarded by mu
}

// Open indexes the folder opts.Dir, or what has changed of it since it was indexed in opts.IndexDir. It fails if the
// folder is missing or unreadable, if it yields no block ([ErrNoBlocks]), if the index folder is damaged ([ErrCorrupt]) or
// in use ([ErrLocked]), or with the context's cause when ctx ends first. The folder is not watched: see [Index.Refresh].
func Open(ctx context.Context, opts Options) (*Index, error) {
	if opts.Dir == "" {
		return nil, errors.New("bleve: Options.Dir is empty, want a folder")
	}
	x, err := build(ctx, opts, func() (fs.FS, func() error, error) {
		root, err := os.OpenRoot(opts.Dir)
		if err != nil {
			return nil, nil, fmt.Errorf("Options.Dir = %q: %w", opts.Dir, err)
		}
		return root.FS(), root.Close, nil
	})
	if err != nil {
		return nil, fmt.Errorf("bleve: index folder %q: %w", opts.Dir, err)
	}
	return x, nil
}

// New indexes the files of fsys, for example an embed.FS. It fails as [Open] does.
func New(fsys fs.FS, opts Options) (*Index, error) {
	switch {
	case fsys == nil:
		return nil, errors.New("bleve: fsys is nil, want a file system")
	case opts.Dir != "":
		return nil, fmt.Errorf("bleve: Options.Dir = %q, want it empty: New reads its file system", opts.Dir)
	}
	x, err := build(context.Background(), opts, func() (fs.FS, func() error, error) {
		return fsys, func() error { return nil }, nil
	})
	if err != nil {
		return nil, fmt.Errorf("bleve: index file system: %w", err)
	}
	return x, nil
}

// build opens the index and brings it up to date.
func build(ctx context.Context, opts Options, open func() (fs.FS, func() error, error)) (*Index, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	f, err := openFolder(opts)
	if err != nil {
		return nil, err
	}
	x := &Index{core: f.core, files: f.files, opts: opts, open: open}
	x.changes, err = x.refresh(ctx)
	if err == nil {
		err = f.commit()
	}
	if err != nil {
		return nil, errors.Join(err, x.core.close())
	}
	x.changes.Rebuilt = f.rebuilt
	return x, nil
}

// Len returns the number of blocks.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.blocks
}

// Skipped returns the files that matched but are not in the index, with the reason, in lexical order.
func (x *Index) Skipped() []Skipped {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.skipped)
}

// Changes says what [Open] or [New] found.
func (x *Index) Changes() Changes { return x.changes }

// Close frees the index, after the searches that are under way. A second Close does nothing. What is in an index folder
// stays.
func (x *Index) Close() error {
	if err := x.core.close(); err != nil {
		return fmt.Errorf("bleve: close: %w", err)
	}
	return nil
}
