package table

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/gjson"
)

// jsonlFile reads lines of JSON objects.
type jsonlFile struct{ t *Table }

// openJSONL reads all lines for the names of their members.
func openJSONL(ctx context.Context, t *Table) error {
	j := &jsonlFile{t}
	t.reader = j
	seen := map[string]bool{}
	var columns []string
	err := j.objects(ctx, func(o *object) (bool, error) {
		for _, m := range o.members {
			if seen[m.name] {
				continue
			}
			name := strings.Clone(m.name)
			seen[name] = true
			columns = append(columns, name)
			if len(columns) > t.opts.MaxColumns {
				return false, t.fail(o.place(), fmt.Errorf("%w: member %s is column %d, at most %d are allowed (MaxColumns)",
					ErrTooLarge, shorten(name), len(columns), t.opts.MaxColumns))
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return t.setColumns("", columns)
}

func (j *jsonlFile) each(ctx context.Context, f func(*Row) bool) error {
	t := j.t
	cells, nulls, missing := make([]string, len(t.Columns)), make([]bool, len(t.Columns)), make([]bool, len(t.Columns))
	for i := range missing {
		missing[i] = true
	}
	return j.objects(ctx, func(o *object) (bool, error) {
		clear(cells)
		copy(nulls, missing)
		for _, m := range o.members {
			at, ok := t.at[m.name]
			if !ok {
				return false, &Error{Source: t.source, Place: o.place(), Column: m.name, Err: fmt.Errorf("%w: a new member", ErrChanged)}
			}
			cell, null, err := t.cell(m.value)
			if err != nil {
				return false, t.failCell(o.place(), at, around(cell), err)
			}
			cells[at], nulls[at] = cell, null
		}
		return f(&Row{Line: o.line, Cells: cells, nulls: nulls, raw: o.raw}), nil
	})
}

// cell returns the text of a value: that of a string, else the JSON as it stands.
func (t *Table) cell(v gjson.Result) (cell string, null bool, err error) {
	switch v.Type {
	case gjson.Null:
		return "", true, nil
	case gjson.String:
		cell = v.Str
	default:
		cell = v.Raw
	}
	if len(cell) > t.opts.MaxCell {
		return cell, false, fmt.Errorf("%w: the cell has %d bytes, at most %d are allowed (MaxCell)", ErrTooLarge, len(cell), t.opts.MaxCell)
	}
	if v.Type == gjson.String && strings.IndexByte(v.Raw, '\\') >= 0 {
		if strings.IndexByte(cell, 0) >= 0 {
			return cell, false, fmt.Errorf("%w: the cell %w", ErrInvalid, errNUL)
		}
		if half := halfEscape(v.Raw); half != "" {
			return cell, false, fmt.Errorf("%w: %s is half a character", ErrInvalid, half)
		}
	}
	return cell, false, nil
}

// member is a member of an object.
type member struct {
	name  string
	value gjson.Result
}

// object is a line.
type object struct {
	t       *Table
	line    int
	raw     []byte // without the white space around it
	members []member
	names   map[string]bool // those of members; memory
}

func (o *object) place() string { return fmt.Sprintf("line %d", o.line) }

// objects calls f with every line that is not empty. f returns whether to go on. An error in a line is reported with its place.
func (j *jsonlFile) objects(ctx context.Context, f func(*object) (bool, error)) error {
	t := j.t
	return t.fail("", t.file.text(ctx, func(in *bufio.Reader) error {
		var long []byte
		o := &object{t: t, names: map[string]bool{}}
		for {
			b, err := line(in, &long, t.opts.MaxRow)
			if errors.Is(err, io.EOF) {
				return nil
			}
			o.line++
			if errors.Is(err, errLongLine) {
				return &Error{
					Source: t.source, Place: o.place(), Value: shorten(string(b[:min(len(b), 4*shortest)])),
					Err: fmt.Errorf("%w: the line has more than %d bytes (MaxRow)", ErrTooLarge, t.opts.MaxRow),
				}
			}
			if err != nil {
				return err
			}
			if o.raw = bytes.Trim(b, " \t\r\n"); len(o.raw) == 0 {
				continue
			}
			if err := o.parse(); err != nil {
				return t.fail(o.place(), err)
			}
			if more, err := f(o); err != nil || !more {
				return t.fail(o.place(), err)
			}
		}
	}))
}

// parse finds the members.
func (o *object) parse() error {
	if !clean(o.raw) {
		s := string(o.raw)
		return &Error{Source: o.t.source, Place: o.place(), Value: shorten(around(s)), Err: fmt.Errorf("%w: the line %w", ErrInvalid, problem(s))}
	}
	if !json.Valid(o.raw) {
		return &Error{
			Source: o.t.source, Place: o.place(), Value: shorten(string(o.raw[:min(len(o.raw), 4*shortest)])),
			Err: fmt.Errorf("%w: %w", ErrInvalid, syntax(o.raw)),
		}
	}
	if o.raw[0] != '{' {
		return &Error{
			Source: o.t.source, Place: o.place(), Value: shorten(string(o.raw[:min(len(o.raw), 4*shortest)])),
			Err: fmt.Errorf("%w: want a JSON object", ErrInvalid),
		}
	}
	o.members = o.members[:0]
	clear(o.names)
	var err error
	gjson.Parse(string(o.raw)).ForEach(func(key, value gjson.Result) bool {
		name := key.Str
		switch half := halfEscape(key.Raw); {
		case half != "":
			err = fmt.Errorf("%w: in the name of a member, %s is half a character", ErrInvalid, half)
		case len(o.members) == o.t.opts.MaxColumns:
			err = fmt.Errorf("%w: the object has more than %d members (MaxColumns)", ErrTooLarge, o.t.opts.MaxColumns)
		case o.names[name]:
			err = &Error{Source: o.t.source, Place: o.place(), Column: name, Err: fmt.Errorf("%w: the object has this member twice", ErrInvalid)}
		}
		o.names[name] = true
		o.members = append(o.members, member{name, value})
		return err == nil
	})
	return err
}

// syntax returns why a text is no JSON.
func syntax(raw []byte) error {
	var value json.RawMessage
	err := json.Unmarshal(raw, &value)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%w (byte %d of the line)", err, e.Offset)
	}
	return err
}

// halfEscape returns the first escape of a JSON string that is one half of a character without the other.
func halfEscape(raw string) string {
	for at := strings.IndexByte(raw, '\\'); at >= 0 && at+1 < len(raw); {
		size := 2
		if raw[at+1] == 'u' {
			size = 6
			switch code := strings.ToLower(raw[at:min(at+4, len(raw))]); {
			case code >= `\udc` && code <= `\udf`:
				return raw[at : at+6]
			case code >= `\ud8` && code <= `\udb`:
				next := strings.ToLower(raw[at+6 : min(at+10, len(raw))])
				if next < `\udc` || next > `\udf` {
					return raw[at : at+6]
				}
				size = 12
			}
		}
		next := strings.IndexByte(raw[at+size:], '\\')
		if next < 0 {
			return ""
		}
		at += size + next
	}
	return ""
}
