package pdftext

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"

	"github.com/ledongthuc/pdf"
)

// maxDepth bounds the nesting of arrays and dictionaries: the library reads them by recursion, and no recover helps
// against a stack that is used up.
const maxDepth = 10_000

// bounded counts what the library reads, as references may lead it in circles.
type bounded struct {
	*bytes.Reader
	left int64
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	b.left -= int64(len(p))
	if b.left < 0 {
		panic("references lead in circles")
	}
	if off < 0 {
		return 0, errors.New("offset before the file")
	}
	return b.Reader.ReadAt(p, off)
}

// Numbers for which the library makes tables: the sizes and ranges of cross-reference streams, the ranges of
// cross-reference tables, and the columns of compressed streams.
var (
	sizes  = regexp.MustCompile(`/(?:Size|Columns|N|First|W|Index)[\x00\t\n\f\r ]*\[?((?:[\x00\t\n\f\r ]*[-+]?\d+)+)`)
	ranges = regexp.MustCompile(`(?:^|[\x00\t\n\f\r ])(\d{5,})[\x00\t\n\f\r ]+\d+` +
		`[\x00\t\n\f\r ]+\d{10}[\x00\t\n\f\r ]+\d{5}[\x00\t\n\f\r ]+[fn]`)
	number = regexp.MustCompile(`[-+]?\d+`)
	// Names may be written with hexadecimal escapes. No program does so for these.
	escaped = regexp.MustCompile(`/[A-Za-z]*#[0-9A-Fa-f]{2}[A-Za-z#0-9]*[\x00\t\n\f\r ]*\[?[\x00\t\n\f\r ]*\d{6,}`)
)

// precheck refuses what would make the library use up memory or stack.
func precheck(raw []byte) error {
	if depth(raw) > maxDepth {
		return errors.New("arrays are nested too deep")
	}
	// An object needs more than a byte, so no number of objects is as large as the file.
	limit := max(int64(len(raw)), 1<<16)
	for _, m := range sizes.FindAllSubmatch(raw, -1) {
		for _, n := range number.FindAll(m[1], -1) {
			if !within(n, limit) {
				return errors.New("a table is larger than the file")
			}
		}
	}
	for _, m := range ranges.FindAllSubmatch(raw, -1) {
		if !within(m[1], limit) {
			return errors.New("an object number is larger than the file")
		}
	}
	if escaped.Match(raw) {
		return errors.New("a name is escaped")
	}
	return nil
}

func within(n []byte, limit int64) bool {
	v, err := strconv.ParseInt(string(n), 10, 64)
	return err == nil && v <= limit && v >= 0
}

// depth returns how deep brackets are nested, at most. Brackets in strings and pictures count as well, so it may be too
// large by what is unbalanced in them.
func depth(raw []byte) int {
	at, deepest := 0, 0
	for _, c := range raw {
		switch c {
		case '[', '<':
			at++
			deepest = max(deepest, at)
		case ']', '>':
			at = max(at-1, 0)
		}
	}
	return deepest
}

// checkStream panics if a stream is too large or nested too deep once decompressed.
func checkStream(v pdf.Value) {
	body := v.Reader()
	defer func() { _ = body.Close() }()
	var buf [32 << 10]byte
	total, at := 0, 0
	for {
		n, err := body.Read(buf[:])
		total += n
		for _, c := range buf[:n] {
			switch c {
			case '[', '<':
				at++
			case ']', '>':
				at = max(at-1, 0)
			}
			if at > maxDepth {
				panic("arrays are nested too deep")
			}
		}
		if total > maxStream {
			panic("a page is too large")
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(err)
		}
		if n == 0 {
			panic("a stream does not go on")
		}
	}
}
