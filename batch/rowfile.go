package batch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// rowFile keeps the units of all rows in a temporary file, so that they can be read in any order and are the same each time. It is not safe
// for concurrent use.
type rowFile struct {
	file  *os.File
	named bool // it has a name still, so Close must remove it
	w     *bufio.Writer
	at    []int64 // where rows begin, and where the last ends
	buf   []byte
}

func newRowFile(dir string) (*rowFile, error) {
	f, err := os.CreateTemp(dir, "ragpilot-batch-*")
	if err != nil {
		return nil, err
	}
	r := &rowFile{file: f, w: bufio.NewWriterSize(f, 1<<20), at: []int64{0}}
	r.named = os.Remove(f.Name()) != nil // without a name nothing is left of it if the process dies; Windows removes no open file
	return r, nil
}

// Close removes the file.
func (r *rowFile) Close() error {
	err := r.file.Close()
	if r.named {
		err = errors.Join(err, os.Remove(r.file.Name()))
	}
	return err
}

// Len is how many rows there are.
func (r *rowFile) Len() int { return len(r.at) - 1 }

// add appends a row.
func (r *rowFile) add(units []string) error {
	b := binary.AppendUvarint(r.buf[:0], uint64(len(units)))
	for _, u := range units {
		b = binary.AppendUvarint(b, uint64(len(u)))
		b = append(b, u...)
	}
	r.buf = b
	r.at = append(r.at, r.at[len(r.at)-1]+int64(len(b)))
	_, err := r.w.Write(b)
	return err
}

// row returns the units of a row. No row is added after it.
func (r *rowFile) row(i int) ([]string, error) {
	if err := r.w.Flush(); err != nil {
		return nil, err
	}
	b := make([]byte, r.at[i+1]-r.at[i])
	if _, err := r.file.ReadAt(b, r.at[i]); err != nil {
		return nil, fmt.Errorf("temporary file %s: %w", r.file.Name(), err)
	}
	units, err := readUnits(b, nil)
	if err != nil {
		return nil, fmt.Errorf("temporary file %s: %w", r.file.Name(), err)
	}
	return units, nil
}

// Rows reads all rows. The slice of a row is valid until the next one; the strings stay valid.
func (r *rowFile) Rows() iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		err := r.w.Flush()
		in := bufio.NewReaderSize(io.NewSectionReader(r.file, 0, r.at[len(r.at)-1]), 1<<20)
		var units []string
		for i := 0; i < r.Len() && err == nil; i++ {
			b := make([]byte, r.at[i+1]-r.at[i])
			if _, err = io.ReadFull(in, b); err != nil {
				break
			}
			if units, err = readUnits(b, units[:0]); err == nil && !yield(units, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, fmt.Errorf("temporary file %s: %w", r.file.Name(), err))
		}
	}
}

var errRow = errors.New("a row is not as it was written")

// readUnits reads what add wrote, and appends the units. They share the memory of one text.
func readUnits(b []byte, units []string) ([]string, error) {
	text := string(b)
	n, at := binary.Uvarint(b) // 0 units if it cannot be read
	for range n {
		size, k := binary.Uvarint(b[at:])
		if k <= 0 || size > uint64(len(b)-at-k) {
			return nil, errRow
		}
		at += k
		units = append(units, text[at:at+int(size)])
		at += int(size)
	}
	if at != len(b) {
		return nil, errRow
	}
	return units, nil
}
