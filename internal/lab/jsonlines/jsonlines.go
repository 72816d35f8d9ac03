// Package jsonlines reads and writes the lab's files: a JSON value in each line. Rows, scripts, request bodies and samples are such
// files, and their readers all number lines alike, skip empty ones and name the line in errors. It is a package of its own because six
// packages read with it.
package jsonlines

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read calls take with each line that is not empty, without white space around it, and with its number, counted from 1. The line is
// valid until take returns. Errors, those of take included, begin with "line N: "; a line longer than most bytes is an error.
func Read(r io.Reader, most int, take func(number int, line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, most)
	number := 1
	for ; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := take(number, line); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("longer than %d bytes", most)
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", number, err)
	}
	return nil
}

// Write writes each value on a line of its own, without escapes for HTML.
func Write[T any](w io.Writer, values []T) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i := range values {
		if err := enc.Encode(&values[i]); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return out.Flush()
}
