package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/sse"
)

type chunksKey struct{}

// WithChunks returns a context for [Engine.Generate] in which f gets each chunk of the answer as the server sent it, before
// its text is given to onText. That is for engine packages whose server says more in a chunk than the OpenAI API
// knows. f is called by the goroutine of Generate; data is valid during the call only.
func WithChunks(ctx context.Context, f func(data []byte)) context.Context {
	return context.WithValue(ctx, chunksKey{}, f)
}

// chunksOf returns the context's function, nil if there is none.
func chunksOf(ctx context.Context) func(data []byte) {
	f, _ := ctx.Value(chunksKey{}).(func(data []byte))
	return f
}

// answer collects one answer while it arrives. It is used by the goroutine of one Generate call.
type answer struct {
	onText func(piece string) error
	now    func() time.Time
	limit  int               // bytes of text
	chunk  func(data []byte) // may be nil, see WithChunks

	id      string
	chosen  bool            // there was a choice, so an answer, which may be empty
	choices json.RawMessage // of an answer that was not streamed
	text    strings.Builder
	first   time.Time // of the first piece; zero: none yet
	finish  string
	counts  counts
	refused error // what onText returned
}

// readStream reads events until the answer is complete: [DONE], or the end of the stream after a finish reason.
// Usage follows the finish reason, so reading goes on after it, but no fault costs the answer from there on.
func (a *answer) readStream(ctx context.Context, events *sse.Reader) error {
	for {
		done, err := a.readEvent(events)
		if ctx.Err() != nil && !isTimeout(context.Cause(ctx)) {
			// Events that are already buffered must not outlive a cancellation made in onText.
			if err == nil && !done {
				err = ctx.Err()
			}
			return err
		}
		switch {
		case done:
			return a.complete()
		case err == nil:
		case a.refused == nil && a.finish != "":
			return nil
		case errors.Is(err, io.EOF):
			return errors.New("the stream ended without a finish reason")
		default:
			return err
		}
	}
}

// readEvent takes over the next event; done says that it was the last one.
func (a *answer) readEvent(events *sse.Reader) (done bool, err error) {
	e, err := events.Next()
	if err != nil {
		return false, err
	}
	data := bytes.TrimSpace(e.Data)
	if len(data) == 0 {
		return false, nil
	}
	if string(data) == "[DONE]" {
		return true, nil
	}
	d, err := a.decode(e.Name, data)
	if err != nil {
		return false, err
	}
	return false, a.add(d)
}

// readWhole reads an answer that came as one JSON object of at most limit bytes.
func (a *answer) readWhole(r io.Reader, limit int) error {
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return err
	}
	if len(data) > limit {
		return fmt.Errorf("answer of more than %d bytes", limit)
	}
	d, err := a.decode("", data)
	if err != nil {
		return err
	}
	if err := a.add(d); err != nil {
		return err
	}
	var whole struct {
		Choices json.RawMessage `json:"choices"`
	}
	if err := json.Unmarshal(data, &whole); err != nil {
		return err
	}
	a.choices = whole.Choices
	return a.complete()
}

// complete returns an error if what has come to its end is no answer, such as a list of models to which a redirect led.
func (a *answer) complete() error {
	if !a.chosen {
		return errors.New("there is no choice in it")
	}
	return nil
}

// decode reads one chunk; an error that the server reports in it is returned as one.
func (a *answer) decode(event string, data []byte) (delta, error) {
	if a.chunk != nil {
		a.chunk(data)
	}
	d, err := decodeChunk(data)
	if event == "error" && (err != nil || d.reported == nil) {
		return delta{}, &StatusError{Message: errorMessage(data, "")}
	}
	if err != nil {
		return delta{}, err
	}
	if d.reported != nil {
		return delta{}, d.reported
	}
	return d, nil
}

// add takes over a chunk and gives its text to the caller, once.
func (a *answer) add(d delta) error {
	if a.id == "" {
		a.id = d.id
	}
	a.chosen = a.chosen || d.chosen
	if d.finish != "" {
		a.finish = d.finish
	}
	a.counts.merge(d.counts)
	if d.text == "" {
		return nil
	}
	if a.text.Len()+len(d.text) > a.limit {
		return fmt.Errorf("answer's text is longer than %d bytes", a.limit)
	}
	if a.first.IsZero() {
		a.first = a.now()
	}
	a.text.WriteString(d.text)
	if a.onText == nil {
		return nil
	}
	a.refused = a.onText(d.text)
	return a.refused
}

func isTimeout(err error) bool {
	_, ok := errors.AsType[*timeoutError](err)
	return ok
}
