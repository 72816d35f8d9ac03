package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// cursor walks over the bytes of a file.
type cursor struct {
	data []byte
	at   int
}

// ErrTruncated is wrapped by errors of files that end too early.
var ErrTruncated = errors.New("the file ends too early")

func (c *cursor) left() int { return len(c.data) - c.at }

// take returns the next n bytes.
func (c *cursor) take(n uint64, what string) ([]byte, error) {
	if n > uint64(c.left()) {
		return nil, fmt.Errorf("%s: %d bytes at %d, but %d are left: %w", what, n, c.at, c.left(), ErrTruncated)
	}
	b := c.data[c.at : c.at+int(n) : c.at+int(n)]
	c.at += int(n)
	return b, nil
}

func (c *cursor) uint32(what string) (uint32, error) {
	b, err := c.take(4, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (c *cursor) uint64(what string) (uint64, error) {
	b, err := c.take(8, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// text returns a length and that many bytes.
func (c *cursor) text(what string) ([]byte, error) {
	n, err := c.uint64(what)
	if err != nil {
		return nil, err
	}
	return c.take(n, what)
}

// count returns a number of things that take at least size bytes each.
func (c *cursor) count(what string, size int) (int, error) {
	n, err := c.uint64(what)
	if err != nil {
		return 0, err
	}
	if n > uint64(c.left()/size) {
		return 0, fmt.Errorf("%s: %d, but %d bytes are left: %w", what, n, c.left(), ErrTruncated)
	}
	return int(n), nil
}
