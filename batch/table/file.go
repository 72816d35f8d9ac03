package table

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// file is what rows are read from: a file as it was when the table was opened.
type file struct {
	path string
	info os.FileInfo
	temp bool // it is a snapshot, to be removed
}

// openFile notes the state of a file.
func openFile(path string) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, pathless(err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%w: it is a directory", ErrFormat)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is no regular file; use - to read standard input", ErrFormat)
	}
	if info.Size() == 0 {
		return nil, fmt.Errorf("%w: the file is empty", ErrInvalid)
	}
	return &file{path: path, info: info}, nil
}

// pathless returns the cause of an error whose path is known.
func pathless(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	return err
}

// spill copies into a temporary file what write writes.
func spill(dir string, write func(io.Writer) error) (_ *file, err error) {
	f, err := os.CreateTemp(dir, "ragpilot-table-")
	if err != nil {
		return nil, fmt.Errorf("make a snapshot: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	w := bufio.NewWriterSize(f, 1<<18)
	if err := write(w); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return nil, fmt.Errorf("write a snapshot: %w", err)
	}
	info, err := os.Stat(f.Name())
	if err != nil {
		return nil, err
	}
	return &file{path: f.Name(), info: info, temp: true}, nil
}

// remove removes a snapshot.
func (f *file) remove() error {
	if f == nil || !f.temp {
		return nil
	}
	return os.Remove(f.path)
}

// unchanged returns [ErrChanged] if the file is not what it was.
func (f *file) unchanged() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrChanged, pathless(err))
	}
	return same(f.info, info)
}

func same(before, now os.FileInfo) error {
	switch {
	case before.Size() != now.Size():
		return fmt.Errorf("%w: it had %d bytes and has %d", ErrChanged, before.Size(), now.Size())
	case !before.ModTime().Equal(now.ModTime()):
		return fmt.Errorf("%w: it was written again", ErrChanged)
	case !os.SameFile(before, now):
		return fmt.Errorf("%w: it was replaced", ErrChanged)
	}
	return nil
}

// open opens the file for one pass.
func (f *file) open() (*os.File, error) {
	in, err := os.Open(f.path)
	if err != nil {
		return nil, pathless(err)
	}
	info, err := in.Stat()
	if err == nil {
		err = same(f.info, info)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// text calls f with the content of a file of lines: unpacked, and without a byte order mark.
func (f *file) text(ctx context.Context, read func(*bufio.Reader) error) error {
	in, err := f.open()
	if err != nil {
		return err
	}
	defer in.Close()
	r := bufio.NewReaderSize(&until{ctx, in}, 1<<18)
	if head, _ := r.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(r)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		r = bufio.NewReaderSize(&unpacking{&until{ctx, unpacked}}, 1<<18)
	}
	head, _ := r.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = r.Discard(3)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return fmt.Errorf("%w: the file is UTF-16, want UTF-8", ErrInvalid)
	}
	return read(r)
}

// until reads while a context lasts.
type until struct {
	ctx context.Context
	r   io.Reader
}

func (u *until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

// unpacking names what is wrong with compressed data.
type unpacking struct{ r io.Reader }

func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // gzip wraps no end
		err = fmt.Errorf("%w: the compressed data is broken or cut off: %w", ErrInvalid, err)
	}
	return n, err
}

// longLine is returned by line for a line that is too long.
var errLongLine = errors.New("the line is too long")

// line reads a line with its end. It is valid until the next read. buf is memory to use for a line longer than the reader's buffer, of
// which no more than most bytes are kept; they come with errLongLine.
func line(r *bufio.Reader, buf *[]byte, most int) ([]byte, error) {
	b, err := r.ReadSlice('\n')
	if err == nil && len(b) <= most {
		return b, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) && len(b) <= most {
		if len(b) > 0 && errors.Is(err, io.EOF) {
			return b, nil
		}
		return b, err
	}
	*buf = append((*buf)[:0], b...)
	for len(*buf) <= most && errors.Is(err, bufio.ErrBufferFull) {
		b, err = r.ReadSlice('\n')
		*buf = append(*buf, b...)
	}
	switch {
	case len(*buf) > most:
		*buf = (*buf)[:most]
		return *buf, errLongLine
	case errors.Is(err, io.EOF):
		return *buf, nil
	}
	return *buf, err
}

// trim returns a line without its end.
func trim(b []byte) []byte {
	b = bytes.TrimSuffix(b, []byte("\n"))
	return bytes.TrimSuffix(b, []byte("\r"))
}
