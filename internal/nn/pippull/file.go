package pippull

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file that must be as it was published, byte for byte.
type File struct {
	Name   string
	Size   int64  // in bytes; a longer file is refused
	SHA256 string // in hexadecimal; empty: it is not compared
}

// Present returns an error unless the folder has a file of this name and length.
func (f File) Present(dir string) error {
	path := filepath.Join(dir, f.Name)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() != f.Size:
		return fmt.Errorf("%s is not that of the model: %d bytes, want %d", path, info.Size(), f.Size)
	}
	return nil
}

// Copy copies the file as long as ctx goes on, and compares it. It calls progress with the bytes copied so far. The error wraps
// [ErrDownload] if from cannot be read, [ErrChecksum] if it is another file, or ctx's cause.
func (f File) Copy(ctx context.Context, to io.Writer, from io.Reader, progress func(done int64)) error {
	sum, buffer, n := sha256.New(), make([]byte, 1<<20), int64(0)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		read, err := from.Read(buffer)
		if n += int64(read); n > f.Size {
			return fmt.Errorf("%s: %w: more than %d bytes", f.Name, ErrChecksum, f.Size)
		}
		sum.Write(buffer[:read])
		if _, err := to.Write(buffer[:read]); err != nil {
			return err
		}
		if read > 0 {
			progress(n)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDownload, err)
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); f.SHA256 != "" && got != f.SHA256 {
		return fmt.Errorf("%s: %w: %d bytes with SHA-256 %s, want %d with %s", f.Name, ErrChecksum, n, got, f.Size, f.SHA256)
	}
	return nil
}

// Check compares the file at a path, as Copy does.
func (f File) Check(ctx context.Context, path string, progress func(done int64)) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	return f.Copy(ctx, io.Discard, from, progress)
}

// Write copies the file to a new one, which is on the disk afterwards.
func (f File) Write(ctx context.Context, path string, mode fs.FileMode, from io.Reader, progress func(done int64)) error {
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	err = f.Copy(ctx, to, from, progress)
	if err == nil {
		err = to.Sync() // the name must not last longer than the content
	}
	return errors.Join(err, to.Close())
}
