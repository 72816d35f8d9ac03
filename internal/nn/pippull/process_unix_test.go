//go:build unix

package pippull_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A program that is cancelled ends with all that it has started, also what holds its output.
func TestFetchCancelled(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("needs named pipes: ", err)
	}
	// The child holds the pipe's other end, and the program's standard error, for as long as it lives.
	fakes(t, map[string]string{"pip": `case "$*" in *--version) exit 0;; esac; (echo begun; exec sleep 100) >"$FIFO" & wait`})
	t.Setenv("FIFO", fifo)
	pipe, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	reason := errors.New("reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	_, err = wanted.Fetch(ctx, t.TempDir(), func(int64) {
		if ctx.Err() != nil {
			return
		}
		var begun [6]byte // until the other end writes, there is nothing to read
		if n, _ := io.ReadFull(pipe, begun[:]); n > 0 {
			cancel(reason)
		}
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
		t.Errorf("the error is %v", err)
	}
	if err := pipe.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(pipe); err != nil || len(rest) > 0 {
		t.Errorf("what the program started goes on: %q, %v", rest, err)
	}
}
