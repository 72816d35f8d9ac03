package memories

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ragpilot/ragpilot/memory"
)

const (
	// reserveBytes is what a deletion may need of the disk for a while: the pages that it writes to SQLite's log, and up to
	// 4 MiB that the log held before and that move to the file.
	reserveBytes = 8 << 20
	// enoughBytes is the size from which on memories are added: a deletion may leave a few pages less than there were.
	enoughBytes = 6 << 20
)

// reserve is a file of no content. It is emptied when a deletion finds no room, and filled again afterwards. While it is too
// small nothing is added, so that what one deletion needs is there for the next.
type reserve struct {
	path   string
	enough atomic.Bool
	mu     sync.Mutex // one at a time uses the room
}

// newReserve fills the reserve of a folder. A disk without room for it is no error: memories can be read.
func newReserve(dir string) *reserve {
	r := &reserve{path: filepath.Join(dir, "reserve")}
	_ = r.ready()
	return r
}

// ready returns an error while the reserve is too small, which wraps memory.ErrFull if there is no room for it.
func (r *reserve) ready() error {
	if r.enough.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fill()
}

// spend runs f with the room of the reserve.
func (r *reserve) spend(f func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enough.Store(false)
	if err := os.Truncate(r.path, 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("memories: %w", err)
	}
	defer func() { _ = r.fill() }()
	return f()
}

// fill makes the reserve as large as the disk lets it. r.mu is held.
func (r *reserve) fill() error {
	file, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: %w", memory.ErrFull, err)
	}
	if err != nil {
		return fmt.Errorf("memories: reserve: %w", err)
	}
	size, err := fillFile(file)
	err = errors.Join(err, file.Close())
	if size < enoughBytes {
		return fmt.Errorf("memories: %w: the reserve has %d bytes of %d: %w", memory.ErrFull, size, reserveBytes, err)
	}
	r.enough.Store(true)
	return nil
}

// fillFile appends bytes that no file system can compress, and returns the size that it reached.
func fillFile(file *os.File) (size int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	part := make([]byte, 64<<10)
	noise := rand.NewChaCha8([32]byte{})
	for size = info.Size(); size < reserveBytes; {
		n := min(int64(len(part)), reserveBytes-size)
		_, _ = noise.Read(part[:n]) // never fails
		wrote, err := file.WriteAt(part[:n], size)
		size += int64(wrote)
		if err != nil {
			return size, err
		}
	}
	return size, nil
}
