package mmap

import (
	"errors"
	"fmt"
	"os"
)

// ErrNotRegular is wrapped by errors of things that are no regular files.
var ErrNotRegular = errors.New("not a regular file")

// File is an open file's memory.
type File struct {
	data   []byte
	mapped bool
}

// Open maps a regular file, read-only. A file that is shortened while it is mapped makes the process fail with a bus
// error when the missing part is touched.
func Open(path string) (*File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe would wait for who writes to it
		return nil, fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	size := info.Size()
	if size == 0 {
		return &File{}, nil
	}
	if int64(int(size)) != size {
		return nil, fmt.Errorf("%s: %d bytes are too many for this system", path, size)
	}
	file, err := open(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// ReadFile reads a regular file whole, unless it is larger than limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // reading a pipe would wait for who writes to it
		return nil, fmt.Errorf("%s: %w", path, ErrNotRegular)
	case info.Size() > limit:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return os.ReadFile(path)
}

// Bytes returns the file's bytes, to be read only, and not after Close.
func (f *File) Bytes() []byte { return f.data }

// Close gives the memory back. Closing twice is harmless.
func (f *File) Close() error {
	data := f.data
	f.data = nil
	if !f.mapped || data == nil {
		return nil
	}
	return unmap(data)
}
