package table

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"
)

// Summary is what [Table.Check] found.
type Summary struct {
	Rows  int   // how many there are
	Bytes int64 // of all cells, or of all request bodies
	// Digest is a hash of the columns and of all rows in order. A table with the same digest has the same content, whatever its format; it
	// is no protection against a deliberate change.
	Digest string
}

// Check reads the table once, and returns the first problem with its place and its value. For OpenAI batch input it also finds a
// custom_id that is there twice, for which it needs about 50 bytes of memory a row.
func (t *Table) Check(ctx context.Context) (Summary, error) {
	var s Summary
	h := xxh3.New()
	var buf []byte
	text := func(s string) {
		buf = append(binary.AppendUvarint(buf, uint64(len(s))+1), s...)
	}
	for _, name := range t.Columns {
		text(name)
	}
	ids := map[xxh3.Uint128]int{} // the line of each, by its hash
	var twice error
	err := t.each(ctx, func(r *Row) bool {
		s.Rows++
		s.Bytes += int64(len(r.Body))
		for i, cell := range r.Cells {
			s.Bytes += int64(len(cell))
			if r.Null(i) {
				buf = append(buf, 0)
				continue
			}
			text(cell)
		}
		if t.Format == OpenAI {
			key := xxh3.HashString128(r.ID)
			if first, ok := ids[key]; ok {
				twice = &Error{
					Source: t.source, Place: r.Place(), Column: "custom_id", Value: shorten(r.ID),
					Err: fmt.Errorf("%w: line %d has the same", ErrInvalid, first),
				}
				return false
			}
			ids[key] = r.Line
			text(r.ID)
			text(r.URL)
			text(string(r.Body))
		}
		_, _ = h.Write(buf)
		buf = buf[:0]
		return true
	})
	if err == nil {
		err = twice
	}
	if err != nil {
		return Summary{}, err
	}
	_, _ = h.Write(buf)
	sum := h.Sum128().Bytes()
	s.Digest = fmt.Sprintf("%x", sum[:])
	return s, nil
}
