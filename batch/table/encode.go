package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// csvEncoder writes CSV and TSV.
type csvEncoder struct {
	out    *output
	comma  byte
	quotes bool
	same   bool // the input has the same form: its records are copied
	buf    []byte
}

func newCSVEncoder(out *output, like *Table, columns []string, format Format) (encoder, error) {
	e := &csvEncoder{out: out, comma: ',', quotes: !like.opts.NoQuotes, same: like.Format == format}
	if format == TSV {
		e.comma = '\t'
	}
	header := make([]Cell, 0, len(like.Columns)+len(columns))
	for _, name := range like.Columns {
		header = append(header, Text(name))
	}
	for _, name := range columns {
		header = append(header, Text(name))
	}
	e.buf = e.buf[:0]
	return e, e.write(header)
}

func (e *csvEncoder) row(r *Row, added []Cell) error {
	if e.same {
		e.buf = append(append(e.buf[:0], r.raw...), e.comma)
		if len(added) == 0 {
			e.buf = e.buf[:len(r.raw)]
		}
		return e.write(added)
	}
	e.buf = e.buf[:0]
	cells := make([]Cell, 0, len(r.Cells)+len(added))
	for _, cell := range r.Cells {
		cells = append(cells, Text(cell))
	}
	return e.write(append(cells, added...))
}

// write writes what is in buf, and cells.
func (e *csvEncoder) write(cells []Cell) error {
	lone := len(cells) == 1 && len(e.buf) == 0
	for i, cell := range cells {
		if i > 0 {
			e.buf = append(e.buf, e.comma)
		}
		special := strings.ContainsAny(cell.Text, "\"\r\n"+string(e.comma))
		switch {
		case !special && (cell.Text != "" || !lone):
			e.buf = append(e.buf, cell.Text...)
		case e.quotes:
			e.buf = append(append(append(e.buf, '"'), strings.ReplaceAll(cell.Text, `"`, `""`)...), '"')
		case strings.ContainsAny(cell.Text, "\r\n"+string(e.comma)):
			return fmt.Errorf("%w: %s cannot be written without quotes; write JSON lines", ErrInvalid, shorten(cell.Text))
		default:
			e.buf = append(e.buf, cell.Text...)
		}
	}
	e.buf = append(e.buf, '\n')
	_, err := e.out.w.Write(e.buf)
	return err
}

func (e *csvEncoder) end() error { return nil }

// jsonEncoder writes JSON lines.
type jsonEncoder struct {
	out   *output
	same  bool
	names [][]byte // of the table's columns, as JSON
	more  [][]byte // of the added columns
	buf   bytes.Buffer
}

func newJSONEncoder(out *output, like *Table, columns []string) encoder {
	e := &jsonEncoder{out: out, same: like.Format == JSONL}
	for _, name := range like.Columns {
		e.names = append(e.names, quoteJSON(name))
	}
	for _, name := range columns {
		e.more = append(e.more, quoteJSON(name))
	}
	return e
}

// quoteJSON returns a text as JSON, with <, > and & as they are.
func quoteJSON(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // never fails: it is a string
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (e *jsonEncoder) row(r *Row, added []Cell) error {
	e.buf.Reset()
	first := true
	if e.same {
		body := bytes.TrimRight(r.raw[:len(r.raw)-1], " \t\r\n") // up to the closing brace
		e.buf.Write(body)
		first = len(body) == 1
	} else {
		e.buf.WriteByte('{')
		for i, cell := range r.Cells {
			e.member(e.names[i], Cell{cell, r.Null(i)}, &first)
		}
	}
	for i, cell := range added {
		e.member(e.more[i], cell, &first)
	}
	e.buf.WriteString("}\n")
	_, err := e.out.w.Write(e.buf.Bytes())
	return err
}

func (e *jsonEncoder) member(name []byte, cell Cell, first *bool) {
	if !*first {
		e.buf.WriteByte(',')
	}
	*first = false
	e.buf.Write(name)
	e.buf.WriteByte(':')
	if cell.Null {
		e.buf.WriteString("null")
		return
	}
	e.buf.Write(quoteJSON(cell.Text))
}

func (e *jsonEncoder) end() error { return nil }
