package httpload

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/figures"
)

// ErrNotMeasured: the memory of another process is only known on Linux.
var ErrNotMeasured = errors.New("not measured")

// Memory is the resident size of a process in bytes.
type Memory struct {
	Before int64 `json:"before_bytes"` // when the watch began
	Peak   int64 `json:"peak_bytes"`   // the largest that was seen
	After  int64 `json:"after_bytes"`  // when it ended
}

// MemoryWatch reads the size of a process again and again, until Stop.
type MemoryWatch struct {
	read func() (int64, error)
	stop chan struct{}
	done sync.WaitGroup
	m    Memory // of the goroutine until done
}

// WatchMemory begins to watch a process. It returns [ErrNotMeasured] on systems other than Linux, another error if there
// is no such process. Stop must be called.
func WatchMemory(pid int, every time.Duration) (*MemoryWatch, error) {
	if runtime.GOOS != "linux" {
		return nil, ErrNotMeasured
	}
	return watch(func() (int64, error) {
		now, _, err := figures.Memory(pid)
		return now, err
	}, every)
}

func watch(read func() (int64, error), every time.Duration) (*MemoryWatch, error) {
	size, err := read()
	if err != nil {
		return nil, err
	}
	w := &MemoryWatch{read: read, stop: make(chan struct{}), m: Memory{Before: size, Peak: size, After: size}}
	w.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				_ = w.look()
			}
		}
	})
	return w, nil
}

func (w *MemoryWatch) look() error {
	size, err := w.read()
	if err != nil {
		return err
	}
	w.m.After = size
	w.m.Peak = max(w.m.Peak, size)
	return nil
}

// Stop ends the watch and returns what it saw. It is an error if the process has ended meanwhile. Call it once.
func (w *MemoryWatch) Stop() (Memory, error) {
	close(w.stop)
	w.done.Wait()
	err := w.look()
	return w.m, err
}
