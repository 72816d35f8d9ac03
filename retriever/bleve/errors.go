package bleve

import (
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/retriever/bleve/internal/chunk"
	"github.com/ragpilot/ragpilot/retriever/bleve/internal/pdftext"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Errors that callers can distinguish with errors.Is; they are wrapped with the field or file concerned.
var (
	// ErrClosed: the index was used after Close. It is store.ErrClosed.
	ErrClosed = store.ErrClosed
	// ErrEmptyQuery: the query holds nothing but white space. It wraps store.ErrBadQuery.
	ErrEmptyQuery = fmt.Errorf("%w: query is empty", store.ErrBadQuery)
	// ErrNoBlocks: no file matched, or all matching files were empty or skipped.
	ErrNoBlocks = errors.New("no blocks to index")
	// ErrTooLarge: a file was skipped because it is larger than Options.MaxFileBytes.
	ErrTooLarge = errors.New("file is larger than Options.MaxFileBytes")
	// ErrBinary: a file was skipped because it holds a NUL byte, as binary and UTF-16 files do.
	ErrBinary = chunk.ErrBinary
	// ErrBadPDF: a PDF was skipped because it is damaged, needs a password, or is of a kind that cannot be read.
	ErrBadPDF = pdftext.ErrBad
	// ErrNoText: a PDF was skipped because its pages hold no text: scanned pages are pictures.
	ErrNoText = pdftext.ErrNoText
	// ErrCorrupt: the index folder is damaged. Delete it; the next Open builds it again.
	ErrCorrupt = errors.New("index folder is damaged; delete it to build it again")
	// ErrLocked: another process has the index folder open.
	ErrLocked = errors.New("index folder is in use")
)

// Skipped names a file that matched but was not indexed.
type Skipped struct {
	Path string // slash-separated, relative
	Err  error  // wraps ErrTooLarge, ErrBinary, ErrBadPDF or ErrNoText
}
