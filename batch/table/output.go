package table

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ragpilot/ragpilot/internal/base/durable"
)

// WriteOptions configure the functions that create files; the zero WriteOptions are the usual ones.
type WriteOptions struct {
	// Format is the format of the output; empty: by its name.
	Format Format
	// Overwrite replaces an output that is there. The input is never replaced.
	Overwrite bool
}

// output is a file that appears complete, under its name, or not at all.
type output struct {
	path      string
	overwrite bool
	temp      *os.File
	packed    *gzip.Writer // nil: the file is not compressed
	w         *bufio.Writer
	failed    error // the first error; nothing is written after it
	done      bool
}

// testFile wraps the file that is written; nil but in tests.
var testFile func(io.Writer) io.Writer

// createOutput makes the temporary file beside the output.
func createOutput(path string, like *Table, opts WriteOptions, packed bool) (*output, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil && !opts.Overwrite {
			return nil, &Error{Source: path, Err: ErrExists} // a link to a file that is not there
		}
	case err != nil:
		return nil, &Error{Source: path, Err: pathless(err)}
	case info.IsDir():
		return nil, &Error{Source: path, Err: fmt.Errorf("%w: it is a directory", ErrExists)}
	case like != nil && like.input != nil && os.SameFile(info, like.input):
		return nil, &Error{Source: path, Err: fmt.Errorf("%w: it is the input", ErrExists)}
	case !opts.Overwrite:
		return nil, &Error{Source: path, Err: ErrExists}
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, &Error{Source: path, Err: pathless(err)}
	}
	o := &output{path: path, overwrite: opts.Overwrite, temp: temp}
	var w io.Writer = temp
	if testFile != nil {
		w = testFile(temp)
	}
	if packed {
		o.packed = gzip.NewWriter(w)
		w = o.packed
	}
	o.w = bufio.NewWriterSize(w, 1<<18)
	return o, nil
}

// ready returns why nothing can be written.
func (o *output) ready() error {
	if o.done && o.failed == nil {
		return &Error{Source: o.path, Err: ErrClosed}
	}
	return o.failed
}

// fail keeps the first error.
func (o *output) fail(place string, err error) error {
	if err != nil && o.failed == nil {
		o.failed = &Error{Source: o.path, Place: place, Err: err}
	}
	return o.failed
}

// commit gives the file its name, once all of it is on the disk.
func (o *output) commit() error {
	if err := o.ready(); err != nil {
		return errors.Join(err, o.drop())
	}
	err := o.w.Flush()
	if err == nil && o.packed != nil {
		err = o.packed.Close()
	}
	if err == nil {
		err = o.temp.Sync()
	}
	if err == nil && !o.overwrite {
		if _, there := os.Lstat(o.path); there == nil {
			err = ErrExists
		}
	}
	if err != nil {
		return errors.Join(o.fail("", err), o.drop())
	}
	o.done = true
	err = o.temp.Close()
	if err == nil {
		err = os.Rename(o.temp.Name(), o.path)
	}
	if err != nil {
		return errors.Join(o.fail("", err), os.Remove(o.temp.Name()))
	}
	return o.fail("", durable.SyncDir(filepath.Dir(o.path)))
}

// drop removes what was written.
func (o *output) drop() error {
	if o.done {
		return nil
	}
	o.done = true
	return errors.Join(o.temp.Close(), os.Remove(o.temp.Name()))
}
