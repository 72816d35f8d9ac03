package trace

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
)

// Writer writes lines of any of the three formats. Each line reaches the underlying writer in one Write before
// the method returns, so that a reader at the other end of a pipe can go on; only ".gz" files made by [Create] are
// held back until Close. Text is not HTML-escaped.
type Writer struct {
	enc *json.Encoder
	own []io.Closer
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &Writer{enc: enc}
}

// Create returns a Writer to a new file, which the caller must Close; path may end in ".gz" or be "-" for standard
// output. An existing file is truncated.
func Create(path string) (*Writer, error) {
	if path == "-" {
		return NewWriter(os.Stdout), nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(path, ".gz") {
		w := NewWriter(f)
		w.own = []io.Closer{f}
		return w, nil
	}
	z := gzip.NewWriter(f)
	w := NewWriter(z)
	w.own = []io.Closer{z, f}
	return w, nil
}

// WriteRequest writes one line of a trace.
func (w *Writer) WriteRequest(q Request) error {
	q.Docs = notNil(q.Docs)
	return w.enc.Encode(q)
}

// WriteBlock writes one line of a blocks file.
func (w *Writer) WriteBlock(b Block) error { return w.enc.Encode(b) }

// WritePlan writes one line of a plan.
func (w *Writer) WritePlan(p Plan) error {
	p.Docs, p.Refs = notNil(p.Docs), notNil(p.Refs)
	return w.enc.Encode(p)
}

// Close finishes and closes a file made by [Create]; for other Writers it does nothing.
func (w *Writer) Close() error {
	var err error
	for _, c := range w.own {
		err = errors.Join(err, c.Close())
	}
	w.own = nil
	return err
}

// notNil makes an empty list print as [] and not as null.
func notNil(ids []string) []string {
	if ids == nil {
		return []string{}
	}
	return ids
}
