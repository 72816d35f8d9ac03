package stage

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// performance is one answer on its way.
type performance struct {
	w          http.ResponseWriter
	r          *http.Request
	api        *api
	way        string
	stream     bool
	whole      string
	events     []string
	gate, gone *signal
}

func (p *performance) give() {
	if status, err := strconv.Atoi(p.way); err == nil {
		p.fail(status)
		return
	}
	if p.way == "silent" {
		p.wait()
		return
	}
	if !p.stream {
		p.give1()
		return
	}
	p.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	half := len(p.events) / 2
	switch p.way {
	case "gzip":
		p.w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(p.w)
		for _, e := range p.events {
			_, _ = io.WriteString(z, e)
			_ = z.Flush()
			p.flush()
		}
		_ = z.Close()
	case "torn":
		for text := strings.Join(p.events, ""); text != ""; {
			n := min(7, len(text))
			p.say(text[:n])
			text = text[n:]
		}
	case "gate":
		p.say(p.events[0])
		select {
		case <-p.gate.c:
		case <-p.r.Context().Done():
			return
		}
		p.say(p.events[1:]...)
	case "hang":
		p.say(p.events[0])
		p.wait()
	case "cut":
		p.say(p.events[:half]...)
		panic(http.ErrAbortHandler) // ends the connection, or with HTTP/2 the stream
	case "error":
		p.say(append(p.events[:half:half], p.api.broken())...)
	default:
		p.say(p.events...)
	}
}

// give1 gives an answer that is not streamed.
func (p *performance) give1() {
	h := p.w.Header()
	h.Set("Content-Type", "application/json")
	switch p.way {
	case "gzip":
		h.Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(p.w)
		_, _ = io.WriteString(z, p.whole)
		_ = z.Close()
	case "torn":
		for text := p.whole; text != ""; {
			n := min(7, len(text))
			p.say(text[:n])
			text = text[n:]
		}
	case "cut":
		h.Set("Content-Length", strconv.Itoa(len(p.whole)))
		p.say(p.whole[:len(p.whole)/2])
		panic(http.ErrAbortHandler)
	default:
		_, _ = io.WriteString(p.w, p.whole)
	}
}

func (p *performance) fail(status int) {
	switch status {
	case http.StatusTooManyRequests:
		p.w.Header().Set("Retry-After", "1")
	case 529:
		p.w.Header().Set("X-Should-Retry", "false")
	}
	send(p.w, status, p.api.failure(status))
}

func (p *performance) say(parts ...string) {
	for _, part := range parts {
		if _, err := io.WriteString(p.w, part); err != nil {
			return
		}
		p.flush()
	}
}

func (p *performance) flush() { _ = http.NewResponseController(p.w).Flush() }

// wait waits for the client to go.
func (p *performance) wait() {
	<-p.r.Context().Done()
	p.gone.give()
}
