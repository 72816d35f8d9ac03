//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd && !windows

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// lockDir takes a directory's lock by making a file that must not be there. Best effort: a killed process leaves it
// behind, and people must remove it.
func lockDir(dir string) (unlock func() error, err error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w: %s (remove %s if there is none)", ErrLocked, dir, path)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	fmt.Fprintln(f, os.Getpid())
	return func() error { return errors.Join(f.Close(), os.Remove(path)) }, nil
}
