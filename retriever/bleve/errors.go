package bleve

import (
	"errors"

	"github.com/ragpilot/ragpilot/retriever/bleve/internal/chunk"
)

// Errors that callers can tell apart with errors.Is; they are wrapped with the field or file concerned.
var (
	// ErrClosed: the index was used after Close.
	ErrClosed = errors.New("index is closed")
	// ErrEmptyQuery: the query holds nothing but white space.
	ErrEmptyQuery = errors.New("query is empty")
	// ErrNoBlocks: no file matched, or all matching files were empty or skipped.
	ErrNoBlocks = errors.New("no blocks to index")
	// ErrTooLarge: a file was skipped because it is larger than Options.MaxFileBytes.
	ErrTooLarge = errors.New("file is larger than Options.MaxFileBytes")
	// ErrBinary: a file was skipped because it holds a NUL byte, as binary and UTF-16 files do.
	ErrBinary = chunk.ErrBinary
)

// Skipped names a file that matched but was not indexed.
type Skipped struct {
	Path string // slash-separated, relative
	Err  error  // wraps ErrTooLarge or ErrBinary
}
