package httpload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ragpilot/ragpilot/internal/sse"
)

// maxEvent bounds one line of a stream, in bytes.
const maxEvent = 1 << 20

// nextData returns the data of the next event, valid until the next call. At the end it returns io.EOF, and
// io.ErrUnexpectedEOF if the last line has no end.
func nextData(events *sse.Reader) ([]byte, error) {
	e, err := events.Next()
	if events.Cut() {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimSpace(e.Data), nil
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
