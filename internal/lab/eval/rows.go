package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/storage/strictjson"
)

// MaxLine bounds a line of a file of rows, in bytes.
const MaxLine = 16 << 20

// ReadRows reads rows, one JSON object a line. Empty lines are passed over; anything else that is not a row, a member that
// rows do not have, and an ID that an earlier row had are errors that name line, field and value.
func ReadRows(r io.Reader) ([]Row, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLine)
	var rows []Row
	seen := map[string]int{}
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		row, err := parseRow(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if first, ok := seen[row.ID]; ok {
			return nil, fmt.Errorf("line %d: id %q: is that of line %d", n, row.ID, first)
		}
		seen[row.ID] = n
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return nil, fmt.Errorf("line %d: longer than %d bytes", n+1, MaxLine)
		}
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if len(rows) == 0 {
		return nil, errors.New("no rows")
	}
	return rows, nil
}

// parseRow reads and checks one line.
func parseRow(line []byte) (row Row, err error) {
	if !utf8.Valid(line) {
		return row, errors.New("not UTF-8")
	}
	if err := strictjson.Decode(line, &row); err != nil {
		return row, err
	}
	return row, row.check()
}

// WriteRows writes rows as [ReadRows] reads them.
func WriteRows(w io.Writer, rows []Row) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i := range rows {
		if err := enc.Encode(&rows[i]); err != nil {
			return fmt.Errorf("row %q: %w", rows[i].ID, err)
		}
	}
	return out.Flush()
}
