package httpload_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
)

// TestMemoryWatch: in virtual time, what was first, the largest, and last.
func TestMemoryWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := []int64{5, 6, 9, 7, 4}
		w, err := httpload.Watch(func() (int64, error) {
			if len(sizes) == 0 {
				return 0, errors.New("it has ended")
			}
			size := sizes[0]
			sizes = sizes[1:]
			return size, nil
		}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3500 * time.Millisecond)
		if m, err := w.Stop(); err != nil || m != (httpload.Memory{Before: 5, Peak: 9, After: 4}) {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

func TestWatchMemory(t *testing.T) {
	w, err := httpload.WatchMemory(os.Getpid(), time.Millisecond)
	if runtime.GOOS != "linux" {
		if !errors.Is(err, httpload.ErrNotMeasured) {
			t.Error(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if m, err := w.Stop(); err != nil || m.Before < 1<<20 || m.Peak < m.Before || m.Peak < m.After {
		t.Errorf("%+v, %v", m, err)
	}
	// A process that has ended is none.
	ended := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := httpload.WatchMemory(ended.Process.Pid, time.Second); err == nil {
		t.Error("no error for a process that has ended")
	}
}
