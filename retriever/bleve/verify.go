package bleve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	bleveindex "github.com/blevesearch/bleve/v2"
	bolterrors "go.etcd.io/bbolt/errors"
)

// crcBytes is the length of the checksum at the end of a segment file.
const crcBytes = 4

// verify compares the index's segment files with their checksums. bleve maps them into memory and believes them: a damaged
// one would be noticed by wrong answers, or by the end of the process, in the middle of a search.
func verify(path string) error {
	segments, err := filepath.Glob(filepath.Join(path, "store", "*.zap"))
	if err != nil {
		return err
	}
	for _, s := range segments {
		if err := verifySegment(s); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, filepath.Base(s), err)
		}
	}
	return nil
}

func verifySegment(path string) (err error) {
	file, err := os.Open(path) //nolint:gosec // the folder is the caller's
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < crcBytes {
		return io.ErrUnexpectedEOF
	}
	sum := crc32.NewIEEE()
	if _, err := io.CopyN(sum, file, info.Size()-crcBytes); err != nil {
		return err
	}
	var want [crcBytes]byte
	if _, err := io.ReadFull(file, want[:]); err != nil {
		return err
	}
	if got := sum.Sum32(); got != binary.BigEndian.Uint32(want[:]) {
		return fmt.Errorf("checksum %08x, want %08x", got, want)
	}
	return nil
}

// openIndex opens a bleve folder. What bleve and its key-value file do with a damaged one, panics and faults of mapped
// memory included, becomes an error.
func openIndex(path string) (index bleveindex.Index, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			index, err = nil, fmt.Errorf("%w: %v", ErrCorrupt, r)
		}
	}()
	index, err = bleveindex.OpenUsing(path, map[string]any{"bolt_timeout": lockPatience})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%w by another process", ErrLocked)
	case errors.Is(err, os.ErrPermission):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return index, nil
}
