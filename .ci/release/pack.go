package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// adder puts one file into an archive.
type adder func(name string, size int64, executable bool, from io.Reader) error

// pack writes an archive whose one folder is named after it and holds the files under their base names, in the order of
// these names. Owners, rights and times of the files on disk have no part in it.
func pack(archive string, at time.Time, files []string) (err error) {
	folder, ok := strings.CutSuffix(filepath.Base(archive), ".tar.gz")
	open := openTar
	if !ok {
		if folder, ok = strings.CutSuffix(folder, ".zip"); !ok {
			return fmt.Errorf("%s: want a name that ends in .tar.gz or .zip", archive)
		}
		open = openZip
	}
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer func() {
		if shut := out.Close(); err == nil {
			err = shut
		}
	}()
	add, end := open(out, at)
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	for i, file := range files {
		if i > 0 && filepath.Base(file) == filepath.Base(files[i-1]) {
			return fmt.Errorf("%s: two files of this name", file)
		}
		if err := addFile(add, path.Join(folder, filepath.Base(file)), file); err != nil {
			return err
		}
	}
	return end()
}

func addFile(add adder, name, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return add(name, info.Size(), info.Mode()&0o100 != 0, f)
}

func mode(executable bool) int64 {
	if executable {
		return 0o755
	}
	return 0o644
}

func openTar(out io.Writer, at time.Time) (adder, func() error) {
	packed, _ := gzip.NewWriterLevel(out, gzip.BestCompression) // a level that it knows
	archive := tar.NewWriter(packed)
	add := func(name string, size int64, executable bool, from io.Reader) error {
		if err := archive.WriteHeader(&tar.Header{
			Name: name, Size: size, Mode: mode(executable), ModTime: at, Format: tar.FormatUSTAR,
		}); err != nil {
			return err
		}
		_, err := io.Copy(archive, from)
		return err
	}
	return add, func() error {
		if err := archive.Close(); err != nil {
			return err
		}
		return packed.Close()
	}
}

func openZip(out io.Writer, at time.Time) (adder, func() error) {
	archive := zip.NewWriter(out)
	add := func(name string, _ int64, executable bool, from io.Reader) error {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(mode(executable)))
		to, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, from)
		return err
	}
	return add, archive.Close
}

// sums prints a line for each file of a folder.
func sums(folder string, out io.Writer) error {
	entries, err := os.ReadDir(folder) // sorted
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%x  %s\n", sha256.Sum256(text), e.Name())
	}
	return nil
}
