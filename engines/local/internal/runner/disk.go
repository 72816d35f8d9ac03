package runner

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvstore"
)

// Files keeps pages beyond the store's memory: a [kvfile.Folder] or a [kvfile.Memory]. Its methods are called by several goroutines; Has
// and Writable return at once.
type Files interface {
	Writable() bool
	Has(id kvfile.ID) bool
	Read(id kvfile.ID, page []float32) error
	Write(id kvfile.ID, page []float32) error
	Forget(salt [32]byte) error
	// Removed returns the pages that have gone since the last call.
	Removed() [][32]byte
}

const (
	slowPause  = 30 * time.Second       // with no loads, when they took longer than computing
	errorPause = 10 * time.Second       // with no writes, after one that failed
	firstPage  = 20 * time.Millisecond  // that a page may take before it is known how long computing takes
	minWait    = 200 * time.Millisecond // that loads may take at least
	maxWait    = 10 * time.Second       // and at most
	flushTime  = 20 * time.Second       // for writing at the end
)

// disk is the tier of pages in files, or in the host's memory below a card's. One goroutine loads and one saves, so that no step waits for
// a file.
type disk struct {
	runner *Runner
	files  Files
	salted bool
	ended  sync.WaitGroup

	// Guarded by the runner's lock.
	work     *sync.Cond // something for one of the goroutines to do, or a page was saved
	loads    []*batch
	saving   bool // a page
	closed   time.Time
	noLoads  time.Time     // until then
	noWrites time.Time     // until then
	page     time.Duration // that loading a page takes, a moving mean that begins with 0
}

// batch is what a sequence waits for: pages that are still to be loaded, in order.
type batch struct{ ids []kvstore.ID }

func newDisk(r *Runner) *disk {
	return &disk{runner: r, files: r.config.Files, salted: r.config.SaltedFiles, work: sync.NewCond(&r.mu)}
}

func (d *disk) start() {
	d.ended.Go(d.load)
	d.ended.Go(d.save)
}

// Has implements [kvstore.Tier]. Nothing is loaded while loading is slower than computing.
func (d *disk) Has(id kvstore.ID) bool {
	return time.Now().After(d.noLoads) && d.keeps(id) && d.files.Has(kvfile.ID{Salt: id.Salt, Page: id.Page})
}

// Wants implements [kvstore.Tier].
func (d *disk) Wants(id kvstore.ID) bool {
	return d.keeps(id) && d.files.Writable() && time.Now().After(d.noWrites) && !d.files.Has(kvfile.ID{Salt: id.Salt, Page: id.Page})
}

// Medium implements [kvstore.Tier].
func (d *disk) Medium() string { return cmp.Or(d.runner.config.Medium, kvstore.Disk) }

func (d *disk) keeps(id kvstore.ID) bool { return d.salted || id.Salt == kvstore.Hash{} }

// enqueue has pages loaded. Those that are not there in the time that computing them takes are computed.
func (d *disk) enqueue(ids []kvstore.ID) {
	if len(ids) == 0 {
		return
	}
	before := 0
	for _, o := range d.loads { // what a sequence that has gone waited for is this one's now, and so is its time
		o.ids = slices.DeleteFunc(o.ids, func(id kvstore.ID) bool { return slices.Contains(ids, id) })
		before += len(o.ids)
	}
	b := &batch{ids}
	d.loads = append(d.loads, b)
	d.work.Broadcast()
	page := d.runner.pace * kvstore.PageTokens
	if page == 0 {
		page = firstPage
	}
	wait := min(max(page*time.Duration(before+len(ids)), minWait), maxWait)
	time.AfterFunc(wait, func() {
		d.runner.mu.Lock()
		defer d.runner.mu.Unlock()
		late := false
		for _, id := range b.ids { // those that are still missing: others may be loading again for another request, which has its own clock
			late = d.runner.store.NotLoaded(id.Page) || late
		}
		if late {
			d.noLoads = time.Now().Add(slowPause)
			d.runner.changed.Signal()
		}
	})
}

// load loads what sequences wait for, in order.
func (d *disk) load() {
	r := d.runner
	buffer := make([]float32, r.config.Model.PageFloats())
	r.mu.Lock()
	defer r.mu.Unlock()
	for d.closed.IsZero() {
		if len(d.loads) == 0 {
			d.work.Wait()
			continue
		}
		b := d.loads[0]
		if len(b.ids) == 0 {
			d.loads = d.loads[1:]
			continue
		}
		id := b.ids[0]
		if !r.store.Loading(id.Page) {
			b.ids = b.ids[1:]
			continue
		}
		r.mu.Unlock()
		began := time.Now()
		err := d.files.Read(kvfile.ID{Salt: id.Salt, Page: id.Page}, buffer)
		took := time.Since(began)
		r.mu.Lock()
		if len(b.ids) > 0 && b.ids[0] == id {
			b.ids = b.ids[1:]
		}
		if err != nil {
			r.store.NotLoaded(id.Page)
		} else {
			r.store.Loaded(id.Page, buffer)
			d.took(took)
		}
		r.changed.Signal()
	}
}

// took updates the mean time of loading a page, and stops loading for a while if that is longer than computing one. One slow page is not
// enough: each counts for an eighth, and for at most four times the time of computing.
func (d *disk) took(t time.Duration) {
	computed := d.runner.pace * kvstore.PageTokens
	if computed == 0 {
		return
	}
	d.page += (min(t, 4*computed) - d.page) / 8
	if d.page > computed {
		d.noLoads, d.page = time.Now().Add(slowPause), 0
	}
}

// mean moves a mean, which is 0 at first, towards a new value.
func mean(old, value time.Duration) time.Duration {
	if old == 0 {
		return value
	}
	return old + (value-old)/8
}

// save writes full pages, also for a while after the end.
func (d *disk) save() {
	r := d.runner
	buffer := make([]float32, r.config.Model.PageFloats())
	r.mu.Lock()
	defer r.mu.Unlock()
	for d.closed.IsZero() || time.Since(d.closed) < flushTime {
		u, ok := r.store.NextUnsaved(buffer)
		if !ok {
			if !d.closed.IsZero() {
				return
			}
			d.work.Wait()
			continue
		}
		if time.Now().Before(d.noWrites) {
			continue // what waits since before the error is not written, either
		}
		d.saving = true
		r.mu.Unlock()
		err := d.files.Write(kvfile.ID{Salt: u.ID.Salt, Page: u.ID.Page}, u.Memory)
		r.mu.Lock()
		d.saving = false
		d.work.Broadcast()
		if err == nil {
			r.store.Saved(u)
			d.removed()
		} else {
			d.noWrites = time.Now().Add(errorPause)
			if !d.closed.IsZero() {
				return
			}
		}
	}
}

// removed passes on which pages have gone.
func (d *disk) removed() {
	for _, page := range d.files.Removed() {
		d.runner.store.Vanished(page)
	}
}

// close waits until what is in memory is saved, up to a limit: a disk may answer no more.
func (d *disk) close() {
	d.runner.mu.Lock()
	d.closed = time.Now()
	d.work.Broadcast()
	d.runner.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		d.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(flushTime + maxWait):
	}
}

// Forget empties the cache in memory, as Clear does, and deletes the pages in files that have this salt; empty: those without one.
func (r *Runner) Forget(salt string) error {
	r.Clear()
	if r.disk == nil {
		return nil
	}
	r.Saved()
	return r.disk.files.Forget(kvstore.SaltOf(salt))
}

// Saved waits until the page that is being saved is in its place.
func (r *Runner) Saved() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.disk != nil && r.disk.saving {
		r.disk.work.Wait()
	}
}
