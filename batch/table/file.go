package table

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// file is what rows are read from: a file as it was when the table was opened.
type file struct {
	path string
	info os.FileInfo
	temp *os.File // a snapshot, which only this process has; nil: path is the file
}

// input is a file that is open for one pass.
type input interface {
	io.Reader
	io.ReaderAt
	io.Closer
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

// spill copies into a temporary file what write writes. The file has no name where the system allows that, so that nothing of a table is
// left if the process dies.
func spill(dir string, write func(io.Writer) error) (_ *file, err error) {
	f, err := os.CreateTemp(dir, "ragpilot-table-")
	if err != nil {
		return nil, fmt.Errorf("make a snapshot: %w", err)
	}
	_ = os.Remove(f.Name()) // Windows keeps the name of an open file: drop removes it there
	defer func() {
		if err != nil {
			err = errors.Join(err, drop(f))
		}
	}()
	w := bufio.NewWriterSize(f, 1<<18)
	if err := write(w); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, fmt.Errorf("write a snapshot: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &file{info: info, temp: f}, nil
}

// drop closes a temporary file, and removes its name if it has one still.
func drop(f *os.File) error {
	err := f.Close()
	if rest := os.Remove(f.Name()); rest != nil && !errors.Is(rest, fs.ErrNotExist) {
		return errors.Join(err, rest)
	}
	return err
}

// remove removes a snapshot.
func (f *file) remove() error {
	if f == nil || f.temp == nil {
		return nil
	}
	return drop(f.temp)
}

// unchanged returns [ErrChanged] if the file is not what it was.
func (f *file) unchanged() error {
	if f.temp != nil {
		return nil
	}
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
func (f *file) open() (input, error) {
	if f.temp != nil {
		return struct {
			*io.SectionReader
			io.Closer
		}{io.NewSectionReader(f.temp, 0, f.info.Size()), io.NopCloser(nil)}, nil
	}
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
