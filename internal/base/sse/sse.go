// Package sse reads streams of server-sent events.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrTooLong: a line or an event of the stream is longer than the limit.
var ErrTooLong = errors.New("event of the stream is too long")

// Event is one server-sent event. Its data is valid until the next call of [Reader.Next].
type Event struct {
	Name string // "error", "message", …; nearly always empty
	Data []byte // the data lines, joined by a line feed
}

// Reader splits a stream into server-sent events, as the HTML standard defines them: lines end in LF, CR
// or CRLF, a leading byte order mark and comment lines are skipped, an event ends at an empty line, and an
// event without data is none. The fields id and retry have no meaning here. One deviation: the standard throws
// away an event that the end of the stream cuts off before its empty line; servers exist that end this way
// after their last chunk, so it is returned. A line that is cut off still fails when it is decoded.
type Reader struct {
	r       *bufio.Reader
	limit   int    // bytes of one line, and of one event's data
	line    []byte // scratch for lines that do not fit r's buffer
	data    []byte
	started bool
	skipLF  bool // the last line ended in CR: an LF that follows belongs to it
	err     error
	bytes   int64 // read so far
	cut     bool
}

// NewReader returns a Reader of r that takes at most limit bytes of one line, and of one event's data.
func NewReader(r *bufio.Reader, limit int) *Reader {
	return &Reader{r: r, limit: limit}
}

// Bytes returns how many bytes of the stream were read.
func (s *Reader) Bytes() int64 { return s.bytes }

// Cut reports whether the stream has ended inside a line. The event that [Reader.Next] returned last may then be a part of one.
func (s *Reader) Cut() bool { return s.cut }

// Next returns the next event, or the error that ended the stream; io.EOF if it ended cleanly.
func (s *Reader) Next() (Event, error) {
	if s.err != nil {
		return Event{}, s.err
	}
	var e Event
	s.data = s.data[:0]
	lines := 0
	for {
		line, err := s.readLine()
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			s.err = err
			if errors.Is(err, io.EOF) && lines > 0 {
				break
			}
			return Event{}, err
		}
		if errors.Is(err, io.EOF) {
			s.err = io.EOF
		}
		if len(line) == 0 { // the end of an event
			if lines > 0 {
				break
			}
			e.Name = "" // a name without data is no event
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if len(s.data)+len(value)+1 > s.limit {
				s.err = fmt.Errorf("%w: data of more than %d bytes", ErrTooLong, s.limit)
				return Event{}, s.err
			}
			if lines > 0 {
				s.data = append(s.data, '\n')
			}
			s.data = append(s.data, value...)
			lines++
		case "event":
			e.Name = string(value)
		}
		if s.err != nil {
			if lines == 0 {
				return Event{}, s.err
			}
			break
		}
	}
	e.Data = s.data
	return e, nil
}

// readLine returns the next line without its end. At the end of the stream it returns what is left and io.EOF.
// The line is valid until the next call.
func (s *Reader) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		chunk, err := s.buffered()
		if err != nil {
			s.cut = len(s.line) > 0 && errors.Is(err, io.EOF)
			return s.line, err
		}
		end := bytes.IndexAny(chunk, "\r\n")
		if end < 0 {
			s.line = append(s.line, chunk...)
			s.discard(len(chunk))
			if len(s.line) > s.limit {
				return nil, fmt.Errorf("%w: line of more than %d bytes", ErrTooLong, s.limit)
			}
			continue
		}
		// A CR's LF may not have arrived yet, and waiting for it would hold a whole event back: drop it when
		// the next line is read.
		s.skipLF = chunk[end] == '\r'
		if len(s.line)+end > s.limit {
			return nil, fmt.Errorf("%w: line of more than %d bytes", ErrTooLong, s.limit)
		}
		line := chunk[:end]
		if len(s.line) > 0 {
			s.line = append(s.line, line...)
			line = s.line
		}
		// Discarding keeps the bytes in place until the reader is filled again.
		s.discard(end + 1)
		return line, nil
	}
}

func (s *Reader) discard(n int) {
	_, _ = s.r.Discard(n)
	s.bytes += int64(n)
}

// buffered returns at least one unread byte, without waiting for more than what one read gives.
func (s *Reader) buffered() ([]byte, error) {
	for {
		if _, err := s.r.Peek(1); err != nil {
			return nil, err
		}
		chunk, _ := s.r.Peek(s.r.Buffered())
		if s.skipLF {
			s.skipLF = false
			if chunk[0] == '\n' {
				s.discard(1)
				continue
			}
		}
		if !s.started {
			s.started = true
			if chunk[0] == '\xef' {
				if mark, _ := s.r.Peek(3); string(mark) == "\xef\xbb\xbf" {
					s.discard(3)
				}
				continue
			}
		}
		return chunk, nil
	}
}
