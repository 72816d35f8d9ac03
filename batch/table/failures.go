package table

import (
	"fmt"
	"strconv"
	"strings"
)

// RowFailure is a row that has no answer, as a line of an error file.
type RowFailure struct {
	Row      int    `json:"row"`       // from 0, like [Row.Number]; in the file rows count from 1, as they do for people
	Place    string `json:"place"`     // as [Row.Place] returns it
	ID       string `json:"custom_id"` // the custom_id, or empty
	Code     string `json:"code"`      // for programs
	Message  string `json:"message"`   // for people
	Status   int    `json:"status"`    // HTTP status; 0: there was none
	Attempts int    `json:"attempts"`
}

// FailureWriter writes an error file of a table. It is not safe for concurrent use.
type FailureWriter struct {
	out  *output
	each encoder // nil: JSON lines
}

// failureColumns are the columns of an error file.
var failureColumns = []string{"row", "place", "custom_id", "code", "message", "status", "attempts"}

// CreateFailures begins an error file, CSV, TSV or JSON lines by its name. like is the input, which is not replaced; it may be nil.
func CreateFailures(path string, like *Table, opts WriteOptions) (*FailureWriter, error) {
	format, packed, err := outputFormat(path, opts)
	if err == nil && format != CSV && format != TSV && format != JSONL {
		err = fmt.Errorf("%w: an error file is CSV, TSV or JSON lines", ErrFormat)
	}
	if err != nil {
		return nil, &Error{Source: path, Err: err}
	}
	out, err := createOutput(path, like, opts, packed)
	if err != nil {
		return nil, err
	}
	w := &FailureWriter{out: out}
	if format != JSONL {
		w.each, err = newCSVEncoder(out, &Table{Columns: failureColumns}, nil, format)
	}
	return w, out.fail("", err)
}

// Write writes a line.
func (w *FailureWriter) Write(f RowFailure) error {
	if err := w.out.ready(); err != nil {
		return err
	}
	f.Row++
	if w.each == nil {
		return w.out.fail("", writeJSON(w.out, f))
	}
	row := &Row{Cells: []string{
		strconv.Itoa(f.Row), f.Place, f.ID, f.Code, strings.ToValidUTF8(f.Message, "\uFFFD"),
		strconv.Itoa(f.Status), strconv.Itoa(f.Attempts),
	}}
	return w.out.fail("", w.each.row(row, nil))
}

// Commit makes the file appear under its name, once it is on the disk.
func (w *FailureWriter) Commit() error { return w.out.commit() }

// Close removes the file if it was not committed. It may always be called.
func (w *FailureWriter) Close() error { return w.out.drop() }
