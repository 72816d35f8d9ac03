package openai

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// errEventTooLong: a line or an event of the stream is longer than Config.MaxEventBytes.
var errEventTooLong = errors.New("event of the stream is too long")

// event is one server-sent event. Its data is valid until the next call of eventReader.next.
type event struct {
	name string // "error", "message", …; nearly always empty
	data []byte // the data lines, joined by a line feed
}

// eventReader splits a stream into server-sent events, as the HTML standard defines them: lines end in LF, CR
// or CRLF, a leading byte order mark and comment lines are skipped, an event ends at an empty line, and an
// event without data is none. The fields id and retry have no meaning here. One deviation: the standard throws
// away an event that the end of the stream cuts off before its empty line; servers exist that end this way
// after their last chunk, so it is returned. A line that is cut off still fails when it is decoded.
type eventReader struct {
	r       *bufio.Reader
	limit   int    // bytes of one line, and of one event's data
	line    []byte // scratch for lines that do not fit r's buffer
	data    []byte
	started bool
	skipLF  bool // the last line ended in CR: an LF that follows belongs to it
	err     error
}

func newEventReader(r *bufio.Reader, limit int) *eventReader {
	return &eventReader{r: r, limit: limit}
}

// next returns the next event, or the error that ended the stream; io.EOF if it ended cleanly.
func (s *eventReader) next() (event, error) {
	if s.err != nil {
		return event{}, s.err
	}
	var e event
	s.data = s.data[:0]
	lines := 0
	for {
		line, err := s.readLine()
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			s.err = err
			if errors.Is(err, io.EOF) && lines > 0 {
				break
			}
			return event{}, err
		}
		if errors.Is(err, io.EOF) {
			s.err = io.EOF
		}
		if len(line) == 0 { // the end of an event
			if lines > 0 {
				break
			}
			e.name = "" // a name without data is no event
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if len(s.data)+len(value)+1 > s.limit {
				s.err = fmt.Errorf("%w: data of more than %d bytes", errEventTooLong, s.limit)
				return event{}, s.err
			}
			if lines > 0 {
				s.data = append(s.data, '\n')
			}
			s.data = append(s.data, value...)
			lines++
		case "event":
			e.name = string(value)
		}
		if s.err != nil {
			if lines == 0 {
				return event{}, s.err
			}
			break
		}
	}
	e.data = s.data
	return e, nil
}

// readLine returns the next line without its end. At the end of the stream it returns what is left and io.EOF.
// The line is valid until the next call.
func (s *eventReader) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		chunk, err := s.buffered()
		if err != nil {
			return s.line, err
		}
		end := bytes.IndexAny(chunk, "\r\n")
		if end < 0 {
			s.line = append(s.line, chunk...)
			_, _ = s.r.Discard(len(chunk))
			if len(s.line) > s.limit {
				return nil, fmt.Errorf("%w: line of more than %d bytes", errEventTooLong, s.limit)
			}
			continue
		}
		// A CR's LF may not have arrived yet, and waiting for it would hold a whole event back: drop it when
		// the next line is read.
		s.skipLF = chunk[end] == '\r'
		if len(s.line)+end > s.limit {
			return nil, fmt.Errorf("%w: line of more than %d bytes", errEventTooLong, s.limit)
		}
		line := chunk[:end]
		if len(s.line) > 0 {
			s.line = append(s.line, line...)
			line = s.line
		}
		// Discarding keeps the bytes in place until the reader is filled again.
		_, _ = s.r.Discard(end + 1)
		return line, nil
	}
}

// buffered returns at least one unread byte, without waiting for more than what one read gives.
func (s *eventReader) buffered() ([]byte, error) {
	for {
		if _, err := s.r.Peek(1); err != nil {
			return nil, err
		}
		chunk, _ := s.r.Peek(s.r.Buffered())
		if s.skipLF {
			s.skipLF = false
			if chunk[0] == '\n' {
				_, _ = s.r.Discard(1)
				continue
			}
		}
		if !s.started {
			s.started = true
			if chunk[0] == '\xef' {
				if mark, _ := s.r.Peek(3); string(mark) == "\xef\xbb\xbf" {
					_, _ = s.r.Discard(3)
				}
				continue
			}
		}
		return chunk, nil
	}
}
