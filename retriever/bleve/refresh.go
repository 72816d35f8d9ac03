package bleve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strconv"
)

// Changes says what [Open], [New] or [Index.Refresh] found, as numbers of files.
type Changes struct {
	Added, Changed, Removed, Unchanged int
	// Rebuilt says that the index folder was made for other options and built anew; all files count as added then.
	Rebuilt bool
}

// Refresh reads the folder again and indexes the files whose content has changed, by hash; blocks of files that are gone
// are removed. Searches go on meanwhile: each file is changed whole. Only one Refresh runs at a time, others wait.
//
// It fails as [Open] does. Files that were read before the failure are indexed then; nothing is removed. A folder without
// any block is such a failure: one that is not mounted must not empty the index.
func (x *Index) Refresh(ctx context.Context) (Changes, error) {
	x.refreshing.Lock()
	defer x.refreshing.Unlock()
	changes, err := x.refresh(ctx)
	if err != nil {
		return Changes{}, fmt.Errorf("bleve: refresh: %w", err)
	}
	return changes, nil
}

// refresh does the work of Open, New and Refresh. The caller holds x.refreshing.
func (x *Index) refresh(ctx context.Context) (changes Changes, err error) {
	fsys, done, err := x.open()
	if err != nil {
		return Changes{}, err
	}
	defer func() { err = errors.Join(err, done()) }()
	names, err := list(ctx, fsys, x.opts)
	if err != nil {
		return Changes{}, err
	}
	u := update{core: x.core, files: maps.Clone(x.files), totals: maps.Clone(x.core.totals), opts: x.opts}
	err = u.readAll(ctx, fsys, names)
	x.files = u.files
	if err != nil {
		return Changes{}, err
	}
	if err := u.remove(names); err != nil {
		return Changes{}, err
	}
	x.files = u.files
	x.mu.Lock()
	x.skipped, x.blocks = u.skipped, x.files.blocks()
	x.mu.Unlock()
	return u.changes, nil
}

// update is one refresh under way.
type update struct {
	core    *core
	opts    Options
	files   manifest         // as stored
	totals  map[string]total // the same
	skipped []Skipped
	changes Changes

	pending []entry // blocks that wait for the next batch, analyzed or not
	next    []named // the files they are of
	stale   []string
}

// named is a file of the next batch.
type named struct {
	name string
	file
	first int // of its blocks in pending
}

// readAll indexes the files that have changed.
func (u *update) readAll(ctx context.Context, fsys fs.FS, names []string) error {
	live := 0 // files with blocks
	progress := Progress{Total: len(names)}
	u.opts.Progress(progress)
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := u.read(ctx, fsys, name)
		switch {
		case skippable(err):
			u.skipped = append(u.skipped, Skipped{Path: name, Err: err})
			u.forget(name)
		case err != nil:
			return err
		case n > 0:
			live++
		}
		progress.Done++
		progress.Path = name
		u.opts.Progress(progress)
	}
	if live == 0 {
		errs := []error{fmt.Errorf("%w: Options.Include = %q", ErrNoBlocks, u.opts.Include)}
		for _, s := range u.skipped {
			errs = append(errs, s.Err)
		}
		return errors.Join(errs...)
	}
	return u.flush(ctx)
}

// read looks at one file and returns the number of its blocks.
func (u *update) read(ctx context.Context, fsys fs.FS, name string) (int, error) {
	raw, err := read(fsys, name, u.opts.MaxFileBytes)
	if err != nil {
		return 0, err
	}
	sum, old := hash(raw), u.files[name]
	if old.Hash == sum {
		u.changes.Unchanged++
		return old.Blocks, nil
	}
	entries, err := split(name, raw, u.opts)
	if err != nil {
		return 0, err
	}
	if old.Hash == "" {
		u.changes.Added++
	} else {
		u.changes.Changed++
	}
	for i := len(entries); i < old.Blocks; i++ {
		u.stale = append(u.stale, name+"#"+strconv.Itoa(i))
	}
	u.next = append(u.next, named{name, file{Hash: sum, Blocks: len(entries), Analyzer: u.opts.analyzerOf(name)}, len(u.pending)})
	u.pending = append(u.pending, entries...)
	if len(u.pending) >= batchBlocks {
		return len(entries), u.flush(ctx)
	}
	return len(entries), nil
}

// forget lets the blocks of a file go with the next batch.
func (u *update) forget(name string) {
	if old, ok := u.files[name]; ok {
		for i := range old.Blocks {
			u.stale = append(u.stale, name+"#"+strconv.Itoa(i))
		}
		u.next = append(u.next, named{name: name, first: len(u.pending)})
		u.changes.Removed++
	}
}

// flush writes the pending files, all of them or none.
func (u *update) flush(ctx context.Context) error {
	if len(u.next) == 0 {
		return nil
	}
	if err := u.core.analyze(ctx, u.pending); err != nil {
		return err
	}
	files, totals := maps.Clone(u.files), maps.Clone(u.totals)
	changed := make([]string, len(u.next))
	for i, f := range u.next {
		changed[i] = f.name
		if old, ok := files[f.name]; ok {
			totals[old.Analyzer] = totals[old.Analyzer].minus(total{old.Blocks, old.Words})
		}
		if f.Hash == "" {
			delete(files, f.name)
			continue
		}
		for _, e := range u.pending[f.first : f.first+f.Blocks] {
			f.Words += len(e.tokens)
		}
		files[f.name] = f.file
		totals[f.Analyzer] = totals[f.Analyzer].plus(total{f.Blocks, f.Words})
	}
	records, err := files.record(changed)
	if err != nil {
		return err
	}
	if err := u.core.apply(change{put: u.pending, remove: u.stale, internal: records, totals: totals}); err != nil {
		return err
	}
	u.files, u.totals = files, totals
	u.pending, u.next, u.stale = nil, nil, nil
	return nil
}

// remove lets the files go that are not there any more.
func (u *update) remove(names []string) error {
	for _, name := range u.files.gone(names) {
		u.forget(name)
	}
	return u.flush(context.Background())
}
