package httpload

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// ErrNotMeasured: this system does not tell the memory of another process in a way that is known here.
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

	mu sync.Mutex
	m  Memory // guarded by mu
}

// WatchMemory begins to watch a process. It returns [ErrNotMeasured] on systems other than Linux, another error if there
// is no such process. Stop must be called.
func WatchMemory(pid int, every time.Duration) (*MemoryWatch, error) {
	if runtime.GOOS != "linux" {
		return nil, ErrNotMeasured
	}
	return watch(func() (int64, error) { return residentSize(pid) }, every)
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
	w.mu.Lock()
	defer w.mu.Unlock()
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

func residentSize(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseResident(status)
}

// parseResident finds VmRSS, which Linux tells in kB of 1024 bytes, in a process's status.
func parseResident(status []byte) (int64, error) {
	for line := range bytes.Lines(status) {
		value, ok := bytes.CutPrefix(line, []byte("VmRSS:"))
		if !ok {
			continue
		}
		value, ok = bytes.CutSuffix(bytes.TrimSpace(value), []byte(" kB"))
		n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
		if !ok || err != nil || n < 0 || n > 1<<52 {
			return 0, fmt.Errorf("VmRSS of a process's status: %q", line)
		}
		return n << 10, nil
	}
	return 0, errors.New("no VmRSS in the process's status: it has ended")
}
