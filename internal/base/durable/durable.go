// Package durable has what keeps files whole on a disk: a directory's lock, files that appear complete or not at all, and names that last.
package durable

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// ErrLocked: another process, or another holder in this one, has the directory's lock.
var ErrLocked = errors.New("in use by another process")

// MakeDir makes a directory that only its owner may enter; one that is there keeps its mode.
func MakeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(filepath.Clean(dir)))
}

// SyncDir waits until the names in a directory are on the disk. Windows cannot be asked to and does it itself.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// WriteFile writes a file that only its owner may read, in a directory that is open as root: it is there, and on the disk, with all of
// data or not at all. temp names a file beside it for the time until then.
func WriteFile(root *os.Root, name, temp string, data []byte) error {
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}

// WritePath is [WriteFile] for a file that is named by its path.
func WritePath(path string, data []byte) error {
	dir, name := filepath.Dir(path), filepath.Base(path)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return WriteFile(root, name, name+".tmp", data)
}
