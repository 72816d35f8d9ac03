package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// lines gives the lines of a file one at a time and puts "name:line: " in front of errors. It never asks the
// underlying reader for more once it holds a whole line, so that a caller on a pipe can answer line i before
// line i+1 exists.
type lines struct {
	name string
	r    *bufio.Reader
	n    int    // number of the line given last, from 1
	buf  []byte // holds a line longer than r's buffer
	err  error  // sticky
	own  []io.Closer
}

const bufferBytes = 64 << 10

func newLines(r io.Reader, name string) *lines {
	return &lines{name: name, r: bufio.NewReaderSize(r, bufferBytes)}
}

// openLines opens path: "-" is standard input, which close leaves open. What begins as a gzip file is unpacked, and
// what is called ".gz" must be one. It waits for the first two bytes.
func openLines(path string) (*lines, error) {
	if path == "-" {
		return unpackedLines(os.Stdin, "standard input", false)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err // names the path already
	}
	l, err := unpackedLines(f, path, strings.HasSuffix(path, ".gz"))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l.own = append(l.own, f)
	return l, nil
}

// unpackedLines reads r, through gzip if it begins so; packed: it has to.
func unpackedLines(r io.Reader, name string, packed bool) (*lines, error) {
	b := bufio.NewReaderSize(r, bufferBytes)
	if magic, _ := b.Peek(2); !packed && string(magic) != "\x1f\x8b" {
		return &lines{name: name, r: b}, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("%s: not a gzip file: %w", name, err)
	}
	l := newLines(z, name)
	l.own = []io.Closer{z}
	return l, nil
}

func (l *lines) close() error {
	var err error
	for _, c := range l.own {
		err = errors.Join(err, c.Close())
	}
	l.own = nil
	if l.err == nil {
		l.err = fmt.Errorf("%s: read after close", l.name)
	}
	return err
}

// next returns the next line that is not blank, without white space around it, valid until the next call; io.EOF
// at the end. Any error is final.
func (l *lines) next() ([]byte, error) {
	for l.err == nil {
		raw, err := l.whole()
		if len(raw) > 0 || err == nil {
			l.n++
		}
		if err != nil && !errors.Is(err, io.EOF) {
			l.n = max(l.n, 1)
			return nil, l.fail(err)
		}
		if line := bytes.TrimSpace(raw); len(line) > 0 {
			if !utf8.Valid(line) {
				return nil, l.fail(errors.New("line is not valid UTF-8"))
			}
			if l.n == 1 && bytes.HasPrefix(line, []byte("\xef\xbb\xbf")) {
				return nil, l.fail(errors.New("file starts with a byte order mark, want plain UTF-8"))
			}
			return line, nil
		}
		l.err = err
	}
	return nil, l.err
}

// whole reads up to and including the next line end, however far away it is.
func (l *lines) whole() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.buf) == 0 && !errors.Is(err, bufio.ErrBufferFull) {
			return part, err // the usual case, no copy
		}
		l.buf = append(l.buf, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.buf, err
		}
	}
}

// fail makes err, with the place it happened at, the reader's final error.
func (l *lines) fail(err error) error {
	l.err = fmt.Errorf("%s:%d: %w", l.name, l.n, err)
	return l.err
}

// nextObject reads the object on the next line as parse does.
func nextObject[T any](l *lines, parse func(*members) T) (value T, err error) {
	line, err := l.next()
	if err != nil {
		return value, err
	}
	m, err := parseObject(line)
	if err != nil {
		return value, l.fail(err)
	}
	if value = parse(m); m.fault != nil {
		var none T
		return none, l.fail(m.fault)
	}
	return value, nil
}
