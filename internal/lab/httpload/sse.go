package httpload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxEvent bounds one line of a stream, in bytes.
const maxEvent = 1 << 20

// events reads the data of server-sent events. Each data line is taken as an event of its own, which is what all
// engines send; other lines are skipped.
type events struct {
	r     *bufio.Reader
	bytes int64  // read so far
	line  []byte // of a line that is longer than r's buffer
}

// next returns the data of the next event, valid until the next call. At the end it returns io.EOF, and
// io.ErrUnexpectedEOF if the last line has no end.
func (e *events) next() ([]byte, error) {
	for {
		line, err := e.readLine()
		if err != nil {
			return nil, err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			return bytes.TrimSpace(data), nil
		}
	}
}

func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		part, err := e.r.ReadSlice('\n')
		e.bytes += int64(len(part))
		if err == nil && len(e.line) == 0 {
			return part, nil
		}
		e.line = append(e.line, part...)
		switch {
		case err == nil:
			return e.line, nil
		case errors.Is(err, io.EOF) && len(e.line) > 0:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(e.line) > maxEvent:
			return nil, fmt.Errorf("line of more than %d bytes", maxEvent)
		}
	}
}

// chunk is what is read of one event.
type chunk struct {
	ID      string `json:"id"`
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		Text   string `json:"text"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Output int `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// text returns the text of the first choice.
func (c *chunk) text() string {
	if len(c.Choices) == 0 {
		return ""
	}
	return c.Choices[0].Delta.Content + c.Choices[0].Text
}

var (
	errInStream  = errors.New("error in stream")
	errMalformed = errors.New("malformed chunk")
)

func parseChunk(data []byte) (*chunk, error) {
	c := new(chunk)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return nil, fmt.Errorf("%w: %s", errInStream, c.Error)
	}
	return c, nil
}

func isDone(data []byte) bool { return string(data) == "[DONE]" }
