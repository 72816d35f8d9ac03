package order

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// sorter sorts keys with payloads by their bytes. It holds at most limit bytes and writes sorted runs to one temporary file beyond that,
// in which a key is stored without the bytes that it shares with the key before it.
type sorter struct {
	dir   string
	limit int
	buf   []byte
	items []item
	runs  []section
	file  *os.File
	size  int64 // of file
}

// item is one key and its payload in buf.
type item struct {
	head uint64 // the first 8 bytes of the key
	at   int
	key  int // bytes of the key
	load int // bytes of the payload
}

// section is a sorted run in the file.
type section struct{ from, to int64 }

const (
	mostRuns   = 256 // runs that are merged at once
	runBuffer  = 64 << 10
	itemBytes  = 32
	tempPrefix = "ragpilot-order-"
)

// add takes a copy of both.
func (s *sorter) add(key, load []byte) error {
	if len(s.items) > 0 && len(s.buf)+len(key)+len(load)+itemBytes*(len(s.items)+1) > s.limit {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.items = append(s.items, item{head(key), len(s.buf), len(key), len(load)})
	s.buf = append(append(s.buf, key...), load...)
	return nil
}

func head(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

func (s *sorter) key(i item) []byte  { return s.buf[i.at : i.at+i.key] }
func (s *sorter) load(i item) []byte { return s.buf[i.at+i.key : i.at+i.key+i.load] }

func (s *sorter) sort() {
	slices.SortFunc(s.items, func(a, b item) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Or(bytes.Compare(s.key(a), s.key(b)), bytes.Compare(s.load(a), s.load(b)))
	})
}

// spill writes what is in memory as a run.
func (s *sorter) spill() error {
	s.sort()
	if s.file == nil {
		f, err := temp(s.dir)
		if err != nil {
			return err
		}
		s.file = f
	}
	if len(s.runs) == mostRuns {
		if err := s.compact(); err != nil {
			return err
		}
	}
	w := newRunWriter(s.file)
	for _, i := range s.items {
		w.write(s.key(i), s.load(i))
	}
	s.buf, s.items = s.buf[:0], s.items[:0]
	return s.end(w)
}

// end records the run that w has written behind all others.
func (s *sorter) end(w *runWriter) error {
	if err := w.w.Flush(); err != nil {
		return fmt.Errorf("write to a temporary file: %w", err)
	}
	s.runs = append(s.runs, section{s.size, s.size + w.n})
	s.size += w.n
	return nil
}

// compact merges all runs into one, in a new file.
func (s *sorter) compact() error {
	f, err := temp(s.dir)
	if err != nil {
		return err
	}
	old, runs := s.file, s.runs
	w := newRunWriter(f)
	err = merge(old, runs, func(key, load []byte, _ int) error {
		w.write(key, load)
		return nil
	})
	s.file, s.runs, s.size = f, nil, 0
	return errors.Join(err, s.end(w), drop(old))
}

// each calls visit with all keys in order, with the number of bytes shared with the key before. The slices are valid until the next
// call.
func (s *sorter) each(ctx context.Context, visit func(key, load []byte, shared int) error) error {
	n := 0
	checked := func(key, load []byte, shared int) error {
		if n++; n&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return visit(key, load, shared)
	}
	if len(s.runs) > 0 {
		if len(s.items) > 0 {
			if err := s.spill(); err != nil {
				return err
			}
		}
		s.buf, s.items = nil, nil
		return merge(s.file, s.runs, checked)
	}
	s.sort()
	var before []byte
	for _, i := range s.items {
		key := s.key(i)
		if err := checked(key, s.load(i), common(before, key)); err != nil {
			return err
		}
		before = key
	}
	return nil
}

// close removes the file.
func (s *sorter) close() error {
	s.buf, s.items, s.runs = nil, nil, nil
	err := drop(s.file)
	s.file = nil
	return err
}

// temp creates a file that has no name from the start where the system allows it, so that nothing is left behind even if the process dies.
func temp(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, tempPrefix)
	if err != nil {
		return nil, fmt.Errorf("create a temporary file: %w", err)
	}
	_ = os.Remove(f.Name()) // fails on systems that keep the names of open files; drop removes it there
	return f, nil
}

func drop(f *os.File) error {
	if f == nil {
		return nil
	}
	err := f.Close()
	if rest := os.Remove(f.Name()); rest != nil && !errors.Is(rest, os.ErrNotExist) {
		return errors.Join(err, rest)
	}
	return err
}

// common is the length of the longest common prefix.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if binary.LittleEndian.Uint64(a[i:]) != binary.LittleEndian.Uint64(b[i:]) {
			break
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// runWriter writes one run. Errors are those of Flush.
type runWriter struct {
	w      *bufio.Writer
	n      int64
	before []byte
	number []byte
}

func newRunWriter(w io.Writer) *runWriter { return &runWriter{w: bufio.NewWriterSize(w, runBuffer)} }

func (r *runWriter) write(key, load []byte) {
	shared := common(r.before, key)
	b := binary.AppendUvarint(r.number[:0], uint64(shared))
	b = binary.AppendUvarint(b, uint64(len(key)-shared))
	b = binary.AppendUvarint(b, uint64(len(load)))
	for _, part := range [][]byte{b, key[shared:], load} {
		n, _ := r.w.Write(part)
		r.n += int64(n)
	}
	r.number = b
	r.before = append(r.before[:shared], key[shared:]...)
}

var errCut = errors.New("a temporary file cannot be read back in full")

// runReader reads one run.
type runReader struct {
	r         *bufio.Reader
	key, load []byte
}

// next returns io.EOF behind the last key.
func (r *runReader) next() error {
	shared, err := binary.ReadUvarint(r.r)
	if err != nil {
		return err
	}
	rest, err1 := binary.ReadUvarint(r.r)
	load, err2 := binary.ReadUvarint(r.r)
	if err1 != nil || err2 != nil {
		return errCut
	}
	r.key = slices.Grow(r.key[:shared], int(rest))[:shared+rest]
	r.load = slices.Grow(r.load[:0], int(load))[:load]
	_, err1 = io.ReadFull(r.r, r.key[shared:])
	_, err2 = io.ReadFull(r.r, r.load)
	if err1 != nil || err2 != nil {
		return errCut
	}
	return nil
}

// runHeap has the run with the least key in front.
type runHeap []*runReader

func (h runHeap) Len() int      { return len(h) }
func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h runHeap) Less(i, j int) bool {
	return cmp.Or(bytes.Compare(h[i].key, h[j].key), bytes.Compare(h[i].load, h[j].load)) < 0
}
func (h *runHeap) Push(x any) { *h = append(*h, x.(*runReader)) }
func (h *runHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// merge reads runs side by side.
func merge(f io.ReaderAt, runs []section, visit func(key, load []byte, shared int) error) error {
	h := make(runHeap, 0, len(runs))
	for _, s := range runs {
		r := &runReader{r: bufio.NewReaderSize(io.NewSectionReader(f, s.from, s.to-s.from), runBuffer)}
		switch err := r.next(); {
		case err == nil:
			h = append(h, r)
		case !errors.Is(err, io.EOF):
			return err
		}
	}
	heap.Init(&h)
	var before []byte
	for len(h) > 0 {
		r := h[0]
		shared := common(before, r.key)
		if err := visit(r.key, r.load, shared); err != nil {
			return err
		}
		before = append(before[:shared], r.key[shared:]...)
		switch err := r.next(); {
		case err == nil:
			heap.Fix(&h, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&h)
		default:
			return err
		}
	}
	return nil
}
