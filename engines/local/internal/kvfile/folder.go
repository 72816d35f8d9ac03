package kvfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/durable"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// ID names a page.
type ID struct {
	Salt [32]byte // a hash of the salt; zero: none
	Page [32]byte // a hash of all tokens up to its last, and of the salt
}

// Config holds the settings of a Folder. All but Format must be set.
type Config struct {
	Dir    string
	Bytes  int64    // upper bound of all pages' files in Dir, of all models together
	Model  string   // its name, for people
	Hash   [32]byte // of all that keys and values depend on besides tokens and kernel
	Kernel string   // what computes: kernels may differ in their last bits
	Shape  Shape
	Format Format
}

// Stats are of one Folder since it was opened, but for Pages and Bytes.
type Stats struct {
	Pages   int   // of this model that can be read
	Bytes   int64 // of all models' files
	Written int64 // pages
	Read    int64
	Evicted int64
	Damaged int64
	Errors  int64 // writes that failed
}

// ErrReadOnly: another process writes to the folder.
var ErrReadOnly = errors.New("another process writes to the folder")

// Folder is an open folder of pages. All methods are safe for concurrent use; files are read and written under no lock.
type Folder struct {
	config   Config
	identity [32]byte
	model    string // subfolder
	root     *os.Root
	unlock   func() error // nil: a reader
	close    func() error
	buffers  sync.Pool // of *[]byte, as long as a page's file
	ended    chan struct{}
	scanning sync.WaitGroup

	mu    sync.Mutex                // guards what follows
	files *lru.Cache[string, *file] // by name
	pages int                       // of this model
	bytes int64                     // with those of files that are being written
	temp  int                       // number of the last temporary file
	gone  [][32]byte
	stats Stats
}

// file is one page's.
type file struct {
	name    string // below the folder
	size    int64
	touched time.Time // as the file system says
}

func newFiles() *lru.Cache[string, *file] { return lru.With(lru.Options[string, *file]{}) }

// rescan is how often a reader looks for pages that the writer has added.
const rescan = 5 * time.Second

// Open opens a folder, and makes it if it is not there. It takes the lock for writing, or reads only if another process has it. The error
// names the setting or the file.
func Open(config Config) (*Folder, error) {
	f := &Folder{config: config, files: newFiles(), ended: make(chan struct{})}
	f.identity = sha256.Sum256(fmt.Appendf(nil, "%s %x %q %v %+v %d",
		magic, config.Hash, config.Kernel, config.Format, config.Shape, pageTokens))
	f.close = sync.OnceValue(f.end)
	f.model = hex.EncodeToString(f.identity[:8])
	f.buffers.New = func() any { b := make([]byte, f.fileSize()); return &b }
	if config.Bytes < f.fileSize() {
		return nil, fmt.Errorf("%d bytes are not enough for one page of %d", config.Bytes, f.fileSize())
	}
	if err := durable.MakeDir(config.Dir); err != nil {
		return nil, err
	}
	if err := private(config.Dir); err != nil {
		return nil, err
	}
	unlock, err := durable.Lock(config.Dir)
	if err != nil && !errors.Is(err, durable.ErrLocked) {
		return nil, err
	}
	f.unlock = unlock
	if f.root, err = os.OpenRoot(config.Dir); err == nil {
		err = f.begin()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// private refuses a folder that others may write to: keys and values from a stranger are answers from a stranger.
func private(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("%s: others may write to it (mode %v): want 0700", dir, info.Mode().Perm())
	}
	return err
}

func (f *Folder) fileSize() int64 {
	return int64(headSize + f.config.Format.Size(f.config.Shape) + sumSize)
}

// begin looks for what is there.
func (f *Folder) begin() error {
	if err := f.scan(); err != nil {
		return err
	}
	if f.unlock == nil {
		f.scanning.Go(f.follow)
		return nil
	}
	if err := f.manifest(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.evict(0)
	return nil
}

// Writable reports whether this process writes to the folder.
func (f *Folder) Writable() bool { return f.unlock != nil }

// Close gives the lock back. Nothing but Close may be called after it.
func (f *Folder) Close() error { return f.close() }

func (f *Folder) end() error {
	close(f.ended)
	f.scanning.Wait()
	var err error
	if f.root != nil {
		err = f.root.Close()
	}
	if f.unlock != nil {
		err = errors.Join(err, f.unlock())
	}
	return err
}

// Stats returns the counters.
func (f *Folder) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Pages, s.Bytes = f.pages, f.bytes
	return s
}

// follow scans the folder again and again, for a reader.
func (f *Folder) follow() {
	tick := time.NewTicker(rescan)
	defer tick.Stop()
	for {
		select {
		case <-f.ended:
			return
		case <-tick.C:
			_ = f.scan() // it may be gone, and come back
		}
	}
}

// scan enters the pages that are there. A writer deletes what an ended process has left half done.
func (f *Folder) scan() error {
	var found []*file
	models, err := modelsOf(f.root)
	if err != nil {
		return err
	}
	for _, model := range models {
		entries, err := fs.ReadDir(f.root.FS(), model)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := path.Join(model, e.Name())
			if f.unlock != nil && isTemp(e.Name()) {
				_ = f.root.Remove(name)
			}
			if info, err := e.Info(); isPage(e.Name()) && err == nil && info.Mode().IsRegular() {
				found = append(found, &file{name: name, size: info.Size(), touched: info.ModTime()})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b *file) int { return a.touched.Compare(b.touched) })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files = newFiles()
	f.pages, f.bytes = 0, 0
	for _, x := range found {
		f.add(x)
		f.bytes += x.size
	}
	return nil
}

const (
	pageSuffix = ".kv"
	tempPrefix = "temp-"
	manifest   = "manifest.json"
)

func isHex(s string, length int) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == length
}

func isModel(name string) bool { return isHex(name, 16) }
func isTemp(name string) bool  { return strings.HasPrefix(name, tempPrefix) }

func isPage(name string) bool {
	salt, page, ok := strings.Cut(strings.TrimSuffix(name, pageSuffix), "-")
	return ok && strings.HasSuffix(name, pageSuffix) && isHex(salt, 16) && isHex(page, 64)
}

// saltName is how the names of a salt's pages begin.
func saltName(salt [32]byte) string { return hex.EncodeToString(salt[:8]) + "-" }

// pageOf returns the page of a file's name.
func pageOf(name string) (page [32]byte) {
	_, rest, _ := strings.Cut(strings.TrimSuffix(name, pageSuffix), "-")
	_, _ = hex.Decode(page[:], []byte(rest))
	return page
}

func (f *Folder) name(id ID) string {
	return f.model + "/" + saltName(id.Salt) + hex.EncodeToString(id.Page[:]) + pageSuffix
}

// add enters a file as the one used last. Its size is counted already.
func (f *Folder) add(x *file) {
	f.files.Put(x.name, x)
	if path.Dir(x.name) == f.model {
		f.pages++
	}
}

// forget takes a file out, if it is there.
func (f *Folder) forget(name string) {
	x, ok := f.files.Peek(name)
	if !ok {
		return
	}
	f.bytes -= x.size
	f.files.Delete(name)
	if path.Dir(name) == f.model {
		f.pages--
		f.gone = append(f.gone[max(0, len(f.gone)-maxGone):], pageOf(path.Base(name)))
	}
}

// maxGone bounds the pages that are kept for Removed.
const maxGone = 1 << 16

// Removed returns the pages of this model, by ID.Page, that were evicted, forgotten, damaged or not found since the last call.
func (f *Folder) Removed() [][32]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := f.gone
	f.gone = nil
	return gone
}

// remove deletes a file and takes it out; one that cannot be deleted stays.
func (f *Folder) remove(name string) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.forget(name)
	return nil
}

// evict deletes what was used longest ago, of any model, until there is room for a file.
func (f *Folder) evict(size int64) bool {
	for name := range f.files.Backward() {
		if f.bytes+size <= f.config.Bytes {
			break
		}
		if f.remove(name) == nil {
			f.stats.Evicted++
		}
	}
	return f.bytes+size <= f.config.Bytes
}

// Has reports whether a page is there, as far as is known in memory. It does not wait for the disk.
func (f *Folder) Has(id ID) bool {
	name := f.name(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.files.Has(name)
}

// touchEvery is how old a file's time may become while it is used: after a restart the order is that of the times.
const touchEvery = time.Minute

// Read reads a page, which has all numbers of the shape. Errors are fs.ErrNotExist, ErrDamaged, and those of the disk; after the first
// two the page is not there any more.
func (f *Folder) Read(id ID, page []float32) error {
	name, buffer := f.name(id), f.buffers.Get().(*[]byte)
	defer f.buffers.Put(buffer)
	err := f.readFile(name, id, *buffer)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case errors.Is(err, ErrDamaged):
		f.stats.Damaged++
		if f.unlock != nil {
			_ = f.root.Remove(name)
		}
		f.forget(name)
		return err
	case err != nil:
		if errors.Is(err, fs.ErrNotExist) {
			f.forget(name)
		}
		return err
	}
	f.stats.Read++
	f.use(name)
	f.config.Format.Decode(page, f.config.Shape, (*buffer)[headSize:])
	return nil
}

// readFile fills buffer with the file of a page, which must be exactly as long.
func (f *Folder) readFile(name string, id ID, buffer []byte) error {
	r, err := f.root.Open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != int64(len(buffer)) {
		return ErrDamaged
	}
	_, err = io.ReadFull(r, buffer)
	if identity, got, ok := check(buffer); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || // it was cut short meanwhile
		err == nil && (!ok || identity != f.identity || got != id) {
		return ErrDamaged
	}
	return err
}

// use notes that a file was used.
func (f *Folder) use(name string) {
	if x, ok := f.files.Get(name); ok && f.unlock != nil && time.Since(x.touched) > touchEvery {
		x.touched = time.Now()
		_ = f.root.Chtimes(name, x.touched, x.touched)
	}
}

// Write writes a page, and returns when it is on the disk. What was used longest ago is deleted to make room. A page that is there is not
// written again.
func (f *Folder) Write(id ID, page []float32) error {
	if f.unlock == nil {
		return ErrReadOnly
	}
	name, size := f.name(id), f.fileSize()
	f.mu.Lock()
	if _, ok := f.files.Get(name); ok {
		f.mu.Unlock()
		return nil
	}
	room := f.evict(size)
	f.bytes += size
	f.temp++
	temp := fmt.Sprintf("%s/%s%d", f.model, tempPrefix, f.temp)
	f.mu.Unlock()
	err := fmt.Errorf("no room for %d bytes", size)
	if room {
		err = f.writeFile(name, temp, id, page)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || f.files.Has(name) {
		f.bytes -= size
	}
	if err != nil {
		f.stats.Errors++
		return fmt.Errorf("write a page of keys and values: %w", err)
	}
	f.stats.Written++
	if !f.files.Has(name) {
		f.add(&file{name: name, size: size, touched: time.Now()})
	}
	return nil
}

func (f *Folder) writeFile(name, temp string, id ID, page []float32) error {
	buffer := f.buffers.Get().(*[]byte)
	defer f.buffers.Put(buffer)
	if err := f.config.Format.Encode((*buffer)[headSize:len(*buffer)-sumSize], f.config.Shape, page); err != nil {
		return err
	}
	seal(*buffer, f.identity, id)
	err := durable.WriteFile(f.root, name, temp, *buffer)
	if errors.Is(err, fs.ErrNotExist) { // the model's folder was removed
		if err = f.manifest(); err == nil {
			err = durable.WriteFile(f.root, name, temp, *buffer)
		}
	}
	return err
}

// Forget deletes all pages of a salt, of all models.
func (f *Folder) Forget(salt [32]byte) error {
	if f.unlock == nil {
		return ErrReadOnly
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for name := range f.files.All() {
		if strings.HasPrefix(path.Base(name), saltName(salt)) {
			errs = append(errs, f.remove(name))
		}
	}
	return errors.Join(errs...)
}
