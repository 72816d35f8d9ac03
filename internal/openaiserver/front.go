// Package openaiserver answers in the shapes of OpenAI's API for completions, as vLLM does. It is what the servers of the local engine
// (engines/local/server) and of the simulator (internal/lab/upstream) have in common: a [Front] answers completions, streamed and whole,
// with usage and errors; beside it are routes, bodies and refusals. What a body means, each server decides.
package openaiserver

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/engines"
)

// Front answers completions. It is only read, and safe for concurrent use.
type Front struct {
	Now func() time.Time
	// WriteTimeout bounds each wait for a client to take a piece of its answer; 0: nothing does.
	WriteTimeout time.Duration
	// EarlyHeaders sends a stream's headers at once, as vLLM does. Otherwise an error before the first text has a status of its own.
	EarlyHeaders bool
	// StopReasons gives each choice a stop_reason; otherwise only the last one of a stream has it.
	StopReasons bool
	// Refuse returns what a client gets for an error of Completion.Generate; nil: nothing, for the client has gone.
	Refuse func(ctx context.Context, err error) *Refusal
}

// Completion is a request for a completion, of one prompt or several.
type Completion struct {
	Kind   *Kind
	ID     string // without the kind's prefix
	Model  string
	Stream bool
	Usage  bool // in a stream's last chunk
	// Prompts is their number. A chat has one.
	Prompts int
	// Tokens are those of each prompt, if the client asked for them; otherwise nil.
	Tokens [][]int32
	// Generate answers all prompts. It calls onText for each piece of text, for each prompt from one goroutine at a time.
	Generate func(ctx context.Context, onText func(prompt int, text string) error) ([]engines.Response, error)
}

// Complete answers a completion.
func (f *Front) Complete(ctx context.Context, w http.ResponseWriter, c *Completion) {
	out := f.writer(w)
	defer out.relax()
	if c.Stream {
		f.stream(ctx, out, c)
		return
	}
	responses, err := c.Generate(ctx, func(int, string) error { return nil })
	if err != nil {
		out.fail(f.Refuse(ctx, err))
		return
	}
	out.deadline()
	writeJSON(w, http.StatusOK, f.answer(c).whole(responses))
}

// stream sends an answer piece by piece. Errors before its first text are reported by a status, later ones in the stream.
func (f *Front) stream(ctx context.Context, out *writer, c *Completion) {
	if f.EarlyHeaders && out.write(nil) != nil {
		return
	}
	a := f.answer(c)
	opened := make([]bool, c.Prompts) // each is used by one goroutine at a time
	open := func(i int) []byte {
		if opened[i] {
			return nil
		}
		opened[i] = true
		return a.opening(i)
	}
	responses, err := c.Generate(ctx, func(i int, text string) error {
		return out.write(append(open(i), a.piece(i, text)...))
	})
	if err != nil {
		out.fail(f.Refuse(ctx, err))
		return
	}
	var rest []byte
	for i, r := range responses {
		rest = append(append(rest, open(i)...), a.end(i, r)...)
	}
	_ = out.write(append(rest, a.last(responses)...))
}

// WriteJSON answers with a value. A client that does not read it is dropped after the timeout.
func (f *Front) WriteJSON(w http.ResponseWriter, v any) {
	out := f.writer(w)
	defer out.relax()
	out.deadline()
	WriteJSON(w, v)
}

// writer writes an answer. Its methods are safe for concurrent use.
type writer struct {
	front   *Front
	w       http.ResponseWriter
	control *http.ResponseController

	mu    sync.Mutex
	begun bool
	err   error // of the first write that failed
}

func (f *Front) writer(w http.ResponseWriter) *writer {
	return &writer{front: f, w: w, control: http.NewResponseController(w)}
}

// deadline bounds the writes that follow. Where that cannot be done, as in tests without a connection, there is no slow client.
func (o *writer) deadline() {
	if t := o.front.WriteTimeout; t > 0 {
		_ = o.control.SetWriteDeadline(time.Now().Add(t))
	}
}

// relax lets the connection serve other requests.
func (o *writer) relax() {
	if o.front.WriteTimeout > 0 {
		_ = o.control.SetWriteDeadline(time.Time{})
	}
}

// write sends a part of a stream, and the header before the first.
func (o *writer) write(data []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	if !o.begun {
		o.begun = true
		h := o.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		if !o.front.EarlyHeaders {
			h.Set("Cache-Control", "no-cache")
		}
	}
	o.deadline()
	if len(data) > 0 {
		_, o.err = o.w.Write(data)
	}
	if o.err == nil {
		if err := o.control.Flush(); o.front.EarlyHeaders {
			o.err = err
		} // otherwise the next write shows the error
	}
	return o.err
}

// fail reports an error: by the status if nothing was sent yet, otherwise in the stream, which it ends.
func (o *writer) fail(e *Refusal) {
	if e == nil {
		return
	}
	o.mu.Lock()
	begun := o.begun
	o.mu.Unlock()
	if !begun {
		o.deadline()
		e.Write(o.w)
		return
	}
	_ = o.write(append(event(e.body()), "data: [DONE]\n\n"...))
}
