package table

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Causes that callers can distinguish with errors.Is.
var (
	// ErrInvalid: the content of the source is broken.
	ErrInvalid = errors.New("invalid")
	// ErrTooLarge: a cell, a row or a page is larger than the options allow.
	ErrTooLarge = errors.New("too large")
	// ErrChanged: the file is not the one that was opened, or it has been written since.
	ErrChanged = errors.New("the file has changed since it was opened")
	// ErrFormat: the format is unknown, or cannot be used here.
	ErrFormat = errors.New("unsupported format")
	// ErrColumn: there is no column of that name.
	ErrColumn = errors.New("no such column")
	// ErrQuery: the database refused the query, or the query is none that only reads.
	ErrQuery = errors.New("query refused")
	// ErrExists: the output is there already, or is the input, or has a column of that name.
	ErrExists = errors.New("it exists already")
	// ErrClosed: the table or the writer is closed.
	ErrClosed = errors.New("closed")
)

// Error is a problem with a table: where it is, and what it is. The text never holds the password of a database.
type Error struct {
	Source string // the path, or the database without its password
	Place  string // "line 12", "row 11", or empty
	Column string // the column's name, or empty
	Value  string // the value in question, shortened and quoted, or empty
	Err    error  // wraps one of this package's causes, or one of the operating system
}

// Error returns the parts that are known, in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Source)
	if e.Place != "" {
		b.WriteString(": " + e.Place)
	}
	if e.Column != "" {
		b.WriteString(": column " + shorten(e.Column))
	}
	if e.Value != "" {
		b.WriteString(": value " + e.Value)
	}
	b.WriteString(": " + e.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail returns an error of the table. One that names its place already stays as it is.
func (t *Table) fail(place string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Source: t.source, Place: place, Err: err}
}

// failCell returns an error about a cell.
func (t *Table) failCell(place string, column int, value string, err error) error {
	e := &Error{Source: t.source, Place: place, Value: shorten(value), Err: err}
	if column < len(t.Columns) {
		e.Column = t.Columns[column]
	} else {
		e.Place += ", column " + strconv.Itoa(column+1)
	}
	return e
}

// shortest is how many bytes of a value an error shows.
const shortest = 40

// shorten quotes a value and cuts it, between characters.
func shorten(s string) string {
	if len(s) <= shortest {
		return strconv.Quote(s)
	}
	at := shortest
	for at > shortest-utf8.UTFMax && !utf8.RuneStart(s[at]) {
		at--
	}
	return strconv.Quote(s[:at]) + "..."
}

var (
	errUTF8 = errors.New("is not UTF-8")
	errNUL  = errors.New("has a NUL character")
)

// problem returns why a text cannot be a cell or a name.
func problem(s string) error {
	switch {
	case !utf8.ValidString(s):
		return errUTF8
	case strings.IndexByte(s, 0) >= 0:
		return errNUL
	}
	return nil
}

// clean reports whether problem finds nothing in any part of a text.
func clean(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// around returns what an error shows of a cell that has a problem: its text from shortly before the problem.
func around(s string) string {
	at := strings.IndexByte(s, 0)
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			at = i
			break
		}
	}
	if at = max(at-shortest/2, 0); at == 0 {
		return s
	}
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}
