package kvfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/ragpilot/ragpilot/internal/storage/durable"
)

// Contents is what a subfolder holds.
type Contents struct {
	Folder   string // its name
	Manifest        // empty if it cannot be read
	Pages    int
	Bytes    int64
	Damaged  int // pages, and a manifest, that cannot be used
	Temp     int // files that a process has not finished, or is writing
}

// maxFile bounds what is read of a file that says nothing of its size: a page of a large model has some 20 MiB.
const maxFile = 1 << 30

// Inspect reads all of a folder, with every checksum. It waits for no other process. Of a folder that is not there the error is
// fs.ErrNotExist.
func Inspect(dir string) ([]Contents, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	models, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var all []Contents
	for _, m := range models {
		if !m.IsDir() || !isModel(m.Name()) {
			continue
		}
		c, err := inspect(root, m.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func inspect(root *os.Root, model string) (Contents, error) {
	c := Contents{Folder: model}
	entries, err := fs.ReadDir(root.FS(), model)
	if err != nil {
		return c, err
	}
	if data, err := readAll(root, path.Join(model, manifest), 1<<16); err != nil || json.Unmarshal(data, &c.Manifest) != nil {
		c.Manifest = Manifest{}
		c.Damaged++
	}
	for _, e := range entries {
		switch {
		case isTemp(e.Name()):
			c.Temp++
		case isPage(e.Name()):
			data, err := readAll(root, path.Join(model, e.Name()), maxFile)
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted meanwhile
			}
			c.Pages++
			c.Bytes += int64(len(data))
			if _, id, ok := check(data); err != nil || !ok || e.Name() != path.Base((&Folder{}).name(id)) {
				c.Damaged++
			}
		}
	}
	return c, nil
}

func readAll(root *os.Root, name string, limit int64) ([]byte, error) {
	r, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if info, err := r.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, ErrDamaged)
	}
	return io.ReadAll(io.LimitReader(r, limit))
}

// Remove deletes what this package has written to a folder: one subfolder, or all ("") and the lock. Other files stay. It is an error if
// a process writes to the folder.
func Remove(dir, model string) error {
	if model != "" && !isModel(model) {
		return fmt.Errorf("folder %q: want 16 hexadecimal digits", model)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	unlock, err := durable.Lock(dir)
	if err != nil {
		return err
	}
	models, err := fs.ReadDir(root.FS(), ".")
	found := model == ""
	for _, m := range models {
		if m.IsDir() && isModel(m.Name()) && (model == "" || model == m.Name()) {
			found = true
			err = errors.Join(err, removeModel(root, m.Name()))
		}
	}
	if !found {
		err = errors.Join(err, fmt.Errorf("folder %s: %w", model, fs.ErrNotExist))
	}
	if err = errors.Join(err, unlock()); err == nil && model == "" {
		err = root.Remove("lock")
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return err
}

func removeModel(root *os.Root, model string) error {
	entries, err := fs.ReadDir(root.FS(), model)
	errs := []error{err}
	others := false
	for _, e := range entries {
		if name := e.Name(); isPage(name) || isTemp(name) || name == manifest {
			errs = append(errs, root.Remove(path.Join(model, name)))
		} else {
			others = true
		}
	}
	if !others {
		errs = append(errs, root.Remove(model))
	}
	return errors.Join(errs...)
}
