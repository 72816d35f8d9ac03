package kvfile

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/ragpilot/ragpilot/internal/base/durable"
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
	models, err := modelsOf(root)
	if err != nil {
		return nil, err
	}
	var all []Contents
	for _, model := range models {
		c, err := inspect(root, model)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// modelsOf returns the names of the models' subfolders.
func modelsOf(root *os.Root) (names []string, err error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if e.IsDir() && isModel(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
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
	models, err := modelsOf(root)
	if model != "" {
		models = slices.DeleteFunc(models, func(m string) bool { return m != model })
		if len(models) == 0 {
			err = errors.Join(err, fmt.Errorf("folder %s: %w", model, fs.ErrNotExist))
		}
	}
	for _, m := range models {
		err = errors.Join(err, removeModel(root, m))
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

// Manifest says what a model's subfolder holds.
type Manifest struct {
	Version int    `json:"version"`
	Model   string `json:"model"`
	Hash    string `json:"hash"` // of the model, in hexadecimal
	Kernel  string `json:"kernel"`
	Format  string `json:"format"`
	Layers  int    `json:"layers"`
	KVHeads int    `json:"kv_heads"`
	HeadDim int    `json:"head_dim"`
	Tokens  int    `json:"page_tokens"`
}

// manifest makes the model's subfolder and writes what it holds.
func (f *Folder) manifest() error {
	if err := f.root.Mkdir(f.model, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	c := f.config
	data, err := json.MarshalIndent(Manifest{
		Version: 1, Model: c.Model, Hash: hex.EncodeToString(c.Hash[:]), Kernel: c.Kernel, Format: c.Format.String(),
		Layers: c.Shape.Layers, KVHeads: c.Shape.KV, HeadDim: c.Shape.Dim, Tokens: pageTokens,
	}, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(f.root, f.model+"/"+manifest, f.model+"/"+tempPrefix+"manifest", append(data, '\n'))
}
