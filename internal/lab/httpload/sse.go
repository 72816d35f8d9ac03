package httpload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ragpilot/ragpilot/internal/sse"
)

// maxEvent bounds an event of a stream, in bytes.
const maxEvent = 1 << 20

// events reads the data of server-sent events.
type events struct {
	*sse.Reader
	done bool // [DONE] has come
}

// newEvents reads through a buffer, which is reset.
func newEvents(r io.Reader, buffer *bufio.Reader) *events {
	buffer.Reset(r)
	return &events{Reader: sse.NewReader(buffer, maxEvent)}
}

// next returns the data of the next event, valid until the next call. At the end it returns io.EOF, and
// io.ErrUnexpectedEOF if the last line has no end.
func (e *events) next() ([]byte, error) {
	event, err := e.Next()
	if e.Cut() {
		return nil, io.ErrUnexpectedEOF
	}
	return bytes.TrimSpace(event.Data), err
}

// all gives the data of each event but [DONE] to take, and sets the problem if the stream is broken or goes on behind [DONE], which is
// a problem of class behind. It reports whether the stream came to its end.
func (e *events) all(o *outcome, behind string, take func(data []byte) error) bool {
	for {
		data, err := e.next()
		o.in = e.Bytes()
		switch {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			o.fail(classOf(err), err)
			return false
		case e.done:
			o.fail(behind, errors.New("more behind [DONE]"))
			return false
		case string(data) == "[DONE]":
			e.done = true
			continue
		}
		if err := take(data); err != nil {
			o.fail(classOf(err), err)
			return false
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
	errCorrupt   = errors.New(corrupt)
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
