package bleve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	bleveindex "github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Index searches the blocks of a folder by BM25. All of it is in memory; its content never changes. Its
// methods are safe for concurrent use.
type Index struct {
	blocks  map[string]contextpilot.Block // by ID; read-only once built
	skipped []Skipped
	stats   *search.BM25Stats // see searchContext

	mu    sync.RWMutex     // held for reading during a search, so that Close waits for it
	index bleveindex.Index // guarded by mu; nil after Close
}

// Open indexes the folder opts.Dir. It fails if the folder is missing or unreadable, if it yields no block
// ([ErrNoBlocks]), or with the context's cause when ctx ends first. The folder is not watched and not needed
// afterwards.
func Open(ctx context.Context, opts Options) (_ *Index, err error) {
	if opts.Dir == "" {
		return nil, errors.New("bleve: Options.Dir is empty, want a folder")
	}
	root, err := os.OpenRoot(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("bleve: Options.Dir = %q: %w", opts.Dir, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	x, err := build(ctx, root.FS(), opts)
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
	x, err := build(context.Background(), fsys, opts)
	if err != nil {
		return nil, fmt.Errorf("bleve: index file system: %w", err)
	}
	return x, nil
}

// Len returns the number of blocks.
func (x *Index) Len() int { return len(x.blocks) }

// Skipped returns the files that matched but are not in the index, with the reason, in lexical order.
func (x *Index) Skipped() []Skipped { return slices.Clone(x.skipped) }

// Close frees the index, after the searches that are under way. A second Close does nothing.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.index == nil {
		return nil
	}
	err := x.index.Close()
	x.index = nil
	if err != nil {
		return fmt.Errorf("bleve: close: %w", err)
	}
	return nil
}
