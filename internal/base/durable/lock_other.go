//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd && !windows

package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Lock takes a directory's lock, until unlock is called, by making a file that must not be there. Best effort: a killed process leaves it
// behind, and people must remove it.
func Lock(dir string) (unlock func() error, err error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w: %s (remove %s if there is none)", ErrLocked, dir, path)
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(f, os.Getpid())
	return func() error { return errors.Join(f.Close(), os.Remove(path)) }, nil
}
