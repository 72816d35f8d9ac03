package server

import (
	"net/http"
	"sync"
	"time"
)

// stream writes server-sent events. Its methods are safe for concurrent use.
type stream struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration // for each write

	mu    sync.Mutex
	begun bool
	err   error // of the first write that failed
}

// deadline bounds the writes that follow. Where that cannot be done, as in tests without a connection, there is no slow client.
func (o *stream) deadline() { _ = o.control.SetWriteDeadline(time.Now().Add(o.patience)) }

// relax lets the connection serve other requests.
func (o *stream) relax() { _ = o.control.SetWriteDeadline(time.Time{}) }

// send writes chunks, and the header before the first.
func (o *stream) send(chunks ...answer) error {
	var data []byte
	for _, a := range chunks {
		data = append(append(append(data, "data: "...), encode(a)...), "\n\n"...)
	}
	return o.write(data)
}

func (o *stream) write(data []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	if !o.begun {
		o.begun = true
		h := o.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
	}
	o.deadline()
	if _, o.err = o.w.Write(data); o.err == nil {
		_ = o.control.Flush() // what fails shows in the next write
	}
	return o.err
}

// fail tells of an error: by the status if nothing was sent yet, else in the stream, which it ends.
func (o *stream) fail(e *refusal) {
	o.mu.Lock()
	begun := o.begun
	o.mu.Unlock()
	if !begun {
		o.deadline()
		refuse(o.w, e)
		return
	}
	_ = o.write(append(append([]byte("data: "), e.body()...), "\n\n"...))
	o.end()
}

func (o *stream) end() { _ = o.write([]byte("data: [DONE]\n\n")) }
