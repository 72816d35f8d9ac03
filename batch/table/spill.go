package table

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// snapshot reads the result of a query, which was read once and written to a file: for each cell its length plus one, 0 for NULL, and its
// text.
type snapshot struct{ t *Table }

// snapshotWriter writes rows of a snapshot.
type snapshotWriter struct {
	t    *Table
	w    io.Writer
	rows int
	size int
	buf  []byte
}

// cell adds a cell to the row.
func (s *snapshotWriter) cell(column int, text string, null bool) error {
	if null {
		s.buf = append(s.buf, 0)
		return nil
	}
	place := fmt.Sprintf("row %d", s.rows+1)
	if len(text) > s.t.opts.MaxCell {
		return s.t.failCell(place, column, text, fmt.Errorf("%w: the cell has %d bytes, at most %d are allowed (MaxCell)",
			ErrTooLarge, len(text), s.t.opts.MaxCell))
	}
	if s.size += len(text); s.size > s.t.opts.MaxRow {
		return s.t.failCell(place, column, text, fmt.Errorf("%w: the row has more than %d bytes (MaxRow)", ErrTooLarge, s.t.opts.MaxRow))
	}
	if err := problem(text); err != nil {
		return s.t.failCell(place, column, around(text), fmt.Errorf("%w: the cell %w", ErrInvalid, err))
	}
	s.buf = append(binary.AppendUvarint(s.buf, uint64(len(text))+1), text...)
	return nil
}

// end writes the row.
func (s *snapshotWriter) end() error {
	_, err := s.w.Write(s.buf)
	s.buf, s.size = s.buf[:0], 0
	s.rows++
	if err != nil {
		return fmt.Errorf("write a snapshot: %w", err)
	}
	return nil
}

func (s *snapshot) each(ctx context.Context, f func(*Row) bool) error {
	in, err := s.t.file.open()
	if err != nil {
		return s.t.fail("", err)
	}
	defer in.Close()
	r := bufio.NewReaderSize(&until{ctx, in}, 1<<18)
	row := Row{Cells: make([]string, len(s.t.Columns)), nulls: make([]bool, len(s.t.Columns))}
	var text []byte
	for {
		for i := range row.Cells {
			n, err := binary.ReadUvarint(r)
			if i == 0 && errors.Is(err, io.EOF) {
				return nil
			}
			row.nulls[i], row.Cells[i] = n == 0, ""
			if err == nil && n > uint64(s.t.opts.MaxCell)+1 {
				err = ErrChanged
			}
			if err == nil && n > 1 {
				text = append(text[:0], make([]byte, n-1)...)
				_, err = io.ReadFull(r, text)
				row.Cells[i] = string(text)
			}
			if err != nil {
				return s.t.fail("", fmt.Errorf("read a snapshot: %w", err))
			}
		}
		if !f(&row) {
			return nil
		}
	}
}
