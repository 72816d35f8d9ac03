package bleve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	bleveindex "github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/index/scorch"
)

const (
	// markFile stands in every index folder and names the subfolder that is in use.
	markFile = "ragpilot-index.json"
	// folderPrefix begins the names of subfolders; a hash of the options follows.
	folderPrefix = "blocks-"
	// format is the version of what is stored.
	format = 1
	// lockPatience is how long an open waits for another process to let go of the folder.
	lockPatience = "1s"
)

// mark is the content of markFile.
type mark struct {
	Format int    `json:"format"`
	Folder string `json:"folder"`
}

// folder is an index that has been opened: its blocks and what it is made of.
type folder struct {
	core    *core
	files   manifest
	rebuilt bool
	commit  func() error // makes a new index the one in use, and removes the old one
	drop    func() error // removes a new index that is not wanted, once it is closed
}

// openFolder opens or makes the index of o.IndexDir, or makes one in memory.
func openFolder(o Options) (folder, error) {
	c, err := newCore(o.analyzers())
	if err != nil {
		return folder{}, err
	}
	f := folder{core: c, files: manifest{}, commit: func() error { return nil }}
	if o.IndexDir == "" {
		return f, c.create("")
	}
	if err := f.open(o.IndexDir, o.fingerprint()); err != nil {
		return folder{}, fmt.Errorf("Options.IndexDir = %q: %w", o.IndexDir, err)
	}
	return f, nil
}

// analyzers returns the options' analyzers by the fields that name them.
func (o Options) analyzers() map[string]string {
	out := map[string]string{"Options.Analyzer": o.Analyzer}
	for i, r := range o.Analyzers {
		out[fmt.Sprintf("Options.Analyzers[%d].Analyzer", i)] = r.Analyzer
	}
	return out
}

// fingerprint returns a hash of the options that decide what is stored for a file.
func (o Options) fingerprint() string {
	raw, err := json.Marshal([]any{format, o.TargetBytes, o.MaxBytes, o.Analyzer, o.Analyzers})
	if err != nil {
		panic(err) // strings and numbers can be marshaled
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:6])
}

// open opens the index in dir, or makes one beside an index of other options.
func (f *folder) open(dir, fingerprint string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	was, err := readMark(dir)
	if err != nil {
		return err
	}
	name := folderPrefix + fingerprint
	f.rebuilt = was.Folder != "" && was.Folder != name
	path := filepath.Join(dir, name)
	if was.Folder == name {
		if err := f.core.openAt(path); err != nil {
			return err
		}
		f.files, err = f.core.readManifest()
		if err != nil {
			return errors.Join(err, f.core.close())
		}
		return nil
	}
	if err := os.RemoveAll(path); err != nil { // of a build that did not get to its end
		return err
	}
	if err := f.core.create(path); err != nil {
		return err
	}
	if was.Folder == "" { // nothing is lost if this build is cut off: the next one goes on where it ended
		return writeMark(dir, name)
	}
	f.drop = func() error { return os.RemoveAll(path) }
	f.commit = func() error {
		if err := writeMark(dir, name); err != nil {
			return err
		}
		return os.RemoveAll(filepath.Join(dir, was.Folder))
	}
	return nil
}

// readMark returns the zero mark for an empty folder. A folder with other things in it is refused.
func readMark(dir string) (mark, error) {
	var m mark
	raw, err := os.ReadFile(filepath.Join(dir, markFile)) //nolint:gosec // the folder is the caller's
	if errors.Is(err, os.ErrNotExist) {
		return m, checkEmpty(dir)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%w: %s: %w", ErrCorrupt, markFile, err)
	}
	if m.Format != format || !strings.HasPrefix(m.Folder, folderPrefix) || !filepath.IsLocal(m.Folder) {
		return m, fmt.Errorf("%w: %s: format %d, folder %q", ErrCorrupt, markFile, m.Format, m.Folder)
	}
	return m, nil
}

func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), folderPrefix) { // left behind by a build that was cut off
			return fmt.Errorf("the folder holds %q and no index, want an empty folder", e.Name())
		}
	}
	return nil
}

// writeMark replaces the mark; a crash leaves the old one or the new one.
func writeMark(dir, name string) error {
	raw, err := json.Marshal(mark{Format: format, Folder: name})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, markFile)
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// newCore returns a core without an index. The analyzers are given by the fields that name them.
func newCore(byField map[string]string) (*core, error) {
	m := newMapping()
	c := &core{analyzers: map[string]analysis.Analyzer{}}
	for field, name := range byField {
		a, err := analyzer(m, field, name)
		if err != nil {
			return nil, err
		}
		c.analyzers[name] = a
	}
	return c, nil
}

// create makes an empty index in a folder, or in memory if path is empty. bleve.NewMemOnly is no way to get there: it takes
// the older index type, which knows no field lengths, so that scoring falls back to TF-IDF without a word, and which took
// 3.4 times as long and 5 times the memory to build 1,000 blocks.
func (c *core) create(path string) (err error) {
	c.index, err = bleveindex.NewUsing(path, newMapping(), scorch.Name, scorch.Name, nil)
	if err != nil {
		return err
	}
	return c.load()
}

// openAt opens the index in a folder, after checking it.
func (c *core) openAt(path string) (err error) {
	if err := verify(path); err != nil {
		return err
	}
	if c.index, err = openIndex(path); err != nil {
		return err
	}
	if err := c.load(); err != nil {
		return errors.Join(err, c.close())
	}
	return nil
}
