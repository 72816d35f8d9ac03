package kvfile

import (
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// Memory keeps pages in the program's memory, in front of a folder or of none: the tier below a card's memory (Strata, §4). What was used
// longest ago is given up first. A goroutine writes pages to the folder. A page that memory gives up before that is not written. All
// methods are safe for concurrent use.
type Memory struct {
	folder *Folder // nil: none
	salted bool    // pages with a salt go to the folder, too
	ended  chan struct{}

	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	pages   *lru.Cache[ID, []float32] // what is in them is never changed
	clears  int                       // how many times pages were given up at once
	gone    []ID
	queue   []ID // to be written to the folder
	writing bool
	closed  bool
	pause   time.Time // until then nothing is written, since a write has failed
}

const (
	maxQueue    = 1024 // names of pages beyond those that are in memory
	failedPause = 10 * time.Second
	flushTime   = 20 * time.Second // for writing at the end
)

// NewMemory returns an empty tier of at most so many pages, at least one. folder may be nil, and must stay open until Close has returned.
// With salted it gets pages with a salt, too.
func NewMemory(pages int, folder *Folder, salted bool) *Memory {
	m := &Memory{folder: folder, salted: salted, pages: lru.New[ID, []float32](max(pages, 1)), ended: make(chan struct{})}
	m.changed = sync.NewCond(&m.mu)
	go m.save()
	return m
}

// save writes pages to the folder, in order.
func (m *Memory) save() {
	defer close(m.ended)
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		for len(m.queue) == 0 && !m.closed {
			m.changed.Wait()
		}
		if len(m.queue) == 0 {
			return
		}
		id := m.queue[0]
		m.queue = m.queue[1:]
		page, ok := m.pages.Peek(id)
		if ok && time.Now().After(m.pause) {
			m.writing = true
			m.mu.Unlock()
			err := m.folder.Write(id, page)
			m.mu.Lock()
			m.writing = false
			if err != nil {
				m.pause = time.Now().Add(failedPause)
			}
		}
		m.changed.Broadcast()
	}
}

// Flush waits until all pages that were written to the tier are in the folder.
func (m *Memory) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.queue) > 0 || m.writing {
		m.changed.Wait()
	}
}

// Close waits until pages are in the folder, up to a limit: a disk may answer no more. Nothing may be called afterwards.
func (m *Memory) Close() {
	m.mu.Lock()
	m.closed = true
	m.changed.Broadcast()
	m.mu.Unlock()
	late := time.AfterFunc(flushTime, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.queue = nil
	})
	defer late.Stop()
	select {
	case <-m.ended:
	case <-time.After(flushTime + failedPause):
	}
}

// below reports whether the folder has a page, or could have it.
func (m *Memory) below(id ID) bool { return m.folder != nil && (m.salted || id.Salt == [32]byte{}) }

// Pages returns how many pages are in memory.
func (m *Memory) Pages() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pages.Len()
}

// Writable is true: memory is.
func (m *Memory) Writable() bool { return true }

// Has reports whether a page is in memory or in the folder.
func (m *Memory) Has(id ID) bool {
	m.mu.Lock()
	has := m.pages.Has(id)
	m.mu.Unlock()
	return has || m.below(id) && m.folder.Has(id)
}

// Read reads a page, from the folder if it is not in memory, and keeps it. Errors are those of [Folder.Read].
func (m *Memory) Read(id ID, page []float32) error {
	m.mu.Lock()
	kept, ok := m.pages.Get(id)
	clears := m.clears
	m.mu.Unlock()
	if ok {
		copy(page, kept) // what is kept is never changed
		return nil
	}
	if !m.below(id) {
		return fs.ErrNotExist
	}
	if err := m.folder.Read(id, page); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clears == clears { // otherwise it may have been forgotten meanwhile
		m.put(id, page)
	}
	return nil
}

// Write keeps a page in memory, and has it written to the folder. It does not fail.
func (m *Memory) Write(id ID, page []float32) error {
	save := m.below(id) && m.folder.Writable() && !m.folder.Has(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(id, page)
	if save {
		if len(m.queue) > 2*m.pages.Len()+maxQueue { // most of them have gone
			m.queue = slices.DeleteFunc(m.queue, func(id ID) bool { return !m.pages.Has(id) })
		}
		m.queue = append(m.queue, id)
		m.changed.Broadcast()
	}
	return nil
}

// put is called with mu.
func (m *Memory) put(id ID, page []float32) {
	gone, _, full := m.pages.Put(id, slices.Clone(page))
	if full && len(m.gone) < maxGone {
		m.gone = append(m.gone, gone)
	}
}

// Clear gives up all pages in memory. Those in the folder stay.
func (m *Memory) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clears++
	for id := range m.pages.All() {
		if len(m.gone) < maxGone {
			m.gone = append(m.gone, id)
		}
	}
	for m.pages.Len() > 0 {
		m.pages.DropOldest()
	}
}

// Forget deletes all pages of a salt, in the folder those of all models. The error is the folder's.
func (m *Memory) Forget(salt [32]byte) error {
	m.forget(salt) // so that none is written to the folder any more
	if m.folder == nil {
		return nil
	}
	err := m.folder.Forget(salt)
	m.forget(salt) // what was read from there meanwhile
	return err
}

// forget takes a salt's pages out of memory, and waits until none is being written.
func (m *Memory) forget(salt [32]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clears++
	var forgotten []ID
	for id := range m.pages.All() {
		if id.Salt == salt {
			forgotten = append(forgotten, id)
		}
	}
	for _, id := range forgotten {
		m.pages.Delete(id)
	}
	for m.writing { // it may be one of them
		m.changed.Wait()
	}
}

// Removed returns the pages, by ID.Page, that have gone from memory or from the folder since the last call and are in neither.
func (m *Memory) Removed() (removed [][32]byte) {
	var below [][32]byte
	if m.folder != nil {
		below = m.folder.Removed()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.gone {
		if m.pages.Has(id) || m.below(id) && m.folder.Has(id) {
			continue
		}
		removed = append(removed, id.Page)
	}
	m.gone = m.gone[:0]
	if len(below) == 0 {
		return removed
	}
	kept := map[[32]byte]bool{}
	for id := range m.pages.All() {
		kept[id.Page] = true
	}
	for _, page := range below {
		if !kept[page] {
			removed = append(removed, page)
		}
	}
	return removed
}
