package llamacpp

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/engines/internal/slotnote"
	"github.com/ragpilot/ragpilot/internal/base/durable"
)

// A slot file and the note beside it share a name that begins with ours, so that files which others save in the folder are left alone.
const (
	filePrefix = "ragpilot-"
	fileEnding = ".slot"
	noteEnding = ".json"
	partEnding = ".part" // a note that is being written
	noteFormat = 1
	nameBytes  = 16
)

// slotFile is a note: what a file has that the server has written, so that it can be checked before the server reads it.
type slotFile struct {
	Format int     `json:"format"`
	Key    string  `json:"key"`    // a hash of the model and the tenant
	Tokens []token `json:"tokens"` // those that are certain, from the first on
	Length int     `json:"length"` // all, as the server counts them
	Bytes  int64   `json:"bytes"`
	Sum    string  `json:"sha256"`

	name string
	used time.Time
}

// fileName returns the name of what holds tokens, without its ending.
func fileName(key string, tokens []token) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d ", key, len(tokens))
	_ = binary.Write(h, binary.LittleEndian, tokens)
	return filePrefix + hex.EncodeToString(h.Sum(nil)[:nameBytes])
}

// errDamaged: a file is not what its note says.
var errDamaged = errors.New("the file is not the one that was saved")

// shelf is the folder of slot files: what is in it, and no more of that than its quota. The server writes and reads the files themselves.
// Files are read and written by one caller at a time; mu guards what Stats and Predict look at meanwhile.
type shelf struct {
	dir    string
	limit  int64
	root   *os.Root
	unlock func() error

	mu    sync.Mutex
	files []*slotFile // used longest ago first
	bytes int64       // of all of them
	spare *slotFile   // is not evicted
}

// openShelf opens a folder, which it makes if it is not there. The error names the folder.
func openShelf(dir string, limit int64) (*shelf, error) {
	if err := durable.MakeDir(dir); err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("%s: anyone may write to it (mode %v): keys and values of strangers would be answered from", dir,
			info.Mode().Perm())
	}
	unlock, err := durable.Lock(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	s := &shelf{dir: dir, limit: limit, root: root, unlock: unlock}
	if err := s.scan(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.evict(0)
	return s, nil
}

func (s *shelf) close() error { return errors.Join(s.root.Close(), s.unlock()) }

// scan enters what is there, and deletes what an ended process has left half done.
func (s *shelf) scan() error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, e := range entries {
		if name, ok := ownName(e.Name()); ok && e.Type().IsRegular() {
			names[name] = true
		}
	}
	for name := range names {
		f, err := s.note(name)
		if err != nil {
			s.delete(name)
			continue
		}
		s.files = append(s.files, f)
		s.bytes += f.Bytes
	}
	slices.SortFunc(s.files, func(a, b *slotFile) int {
		return cmp.Or(a.used.Compare(b.used), strings.Compare(a.name, b.name))
	})
	return nil
}

// ownName returns the name, without ending, of a file that a shelf has made.
func ownName(file string) (name string, ok bool) {
	for _, ending := range []string{fileEnding, noteEnding, partEnding} {
		if name, ok := strings.CutSuffix(file, ending); ok {
			digits, ok := strings.CutPrefix(name, filePrefix)
			_, err := hex.DecodeString(digits)
			return name, ok && err == nil && len(digits) == 2*nameBytes
		}
	}
	return "", false
}

// note reads a file's note, and sees that the file is there and as long.
func (s *shelf) note(name string) (*slotFile, error) {
	data, err := s.root.ReadFile(name + noteEnding)
	if err != nil {
		return nil, err
	}
	f := slotFile{name: name}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	about, err := s.root.Stat(name + noteEnding)
	if err != nil {
		return nil, err
	}
	f.used = about.ModTime()
	info, err := s.root.Stat(name + fileEnding)
	if err != nil {
		return nil, err
	}
	if f.Format != noteFormat || f.name != fileName(f.Key, f.Tokens) || f.Length < len(f.Tokens) || info.Size() != f.Bytes {
		return nil, errDamaged
	}
	return &f, nil
}

// find returns the file that has most of a prompt's first tokens, and how many; nil if there is none.
func (s *shelf) find(key string, prompt []token) (best *slotFile, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.Key != key {
			continue
		}
		// Of two with as much the smaller is loaded sooner.
		n := common(f.Tokens, prompt)
		if n > most || n == most && n > 0 && f.Bytes < best.Bytes {
			best, most = f, n
		}
	}
	return best, most
}

// check reads a whole file and compares it with its note.
func (s *shelf) check(f *slotFile) error {
	size, sum, err := s.sum(f.name)
	if err == nil && (size != f.Bytes || sum != f.Sum) {
		err = errDamaged
	}
	return err
}

func (s *shelf) sum(name string) (size int64, sum string, err error) {
	file, err := s.root.Open(name + fileEnding)
	if err != nil {
		return 0, "", err
	}
	defer file.Close()
	return slotnote.SumOf(file)
}

// add enters a file that the server has just written, with a note that is made of it.
func (s *shelf) add(f *slotFile) error {
	size, sum, err := s.sum(f.name)
	if err != nil {
		return err
	}
	if size != f.Bytes {
		return errDamaged
	}
	// Only the file's owner may change its mode, which is the server's user.
	if err := s.root.Chmod(f.name+fileEnding, 0o600); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	f.Format, f.Sum, f.used = noteFormat, sum, time.Now()
	var note bytes.Buffer
	if err := json.NewEncoder(&note).Encode(f); err != nil {
		return err
	}
	if err := durable.WriteFile(s.root, f.name+noteEnding, f.name+partEnding, note.Bytes()); err != nil {
		return err
	}
	s.mu.Lock()
	s.files = append(s.files, f)
	s.bytes += f.Bytes
	s.mu.Unlock()
	s.dropPartsOf(f)
	s.evict(0)
	return nil
}

// dropPartsOf deletes files all of whose tokens a newer one has.
func (s *shelf) dropPartsOf(whole *slotFile) {
	s.mu.Lock()
	var parts []*slotFile
	for _, f := range s.files {
		if f != whole && f.Key == whole.Key && common(f.Tokens, whole.Tokens) == len(f.Tokens) {
			parts = append(parts, f)
		}
	}
	s.mu.Unlock()
	for _, f := range parts {
		s.remove(f)
	}
}

// touch notes that a file was used. The order outlasts the process as the times of the notes.
func (s *shelf) touch(f *slotFile) {
	f.used = time.Now()
	_ = s.root.Chtimes(f.name+noteEnding, f.used, f.used)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.files, f); i >= 0 {
		s.files = append(slices.Delete(s.files, i, i+1), f)
	}
}

// evict deletes files used longest ago, until there is room for some bytes more.
func (s *shelf) evict(room int64) {
	for {
		s.mu.Lock()
		var f *slotFile
		if i := slices.IndexFunc(s.files, func(f *slotFile) bool { return f != s.spare }); i >= 0 && s.bytes+room > s.limit {
			f = s.files[i]
		}
		s.mu.Unlock()
		if f == nil {
			return
		}
		s.remove(f)
	}
}

// hold keeps a file from being evicted, until it is called with nil.
func (s *shelf) hold(f *slotFile) {
	s.mu.Lock()
	s.spare = f
	s.mu.Unlock()
	s.evict(0)
}

func (s *shelf) remove(f *slotFile) {
	s.mu.Lock()
	if i := slices.Index(s.files, f); i >= 0 {
		s.files = slices.Delete(s.files, i, i+1)
		s.bytes -= f.Bytes
	}
	s.mu.Unlock()
	s.delete(f.name)
}

// delete deletes what there is of a file. The note goes last: a file without one is deleted by the next scan.
func (s *shelf) delete(name string) {
	for _, ending := range []string{fileEnding, partEnding, noteEnding} {
		_ = s.root.Remove(name + ending)
	}
}

// held returns how many files there are, and their bytes.
func (s *shelf) held() (files int, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files), s.bytes
}
