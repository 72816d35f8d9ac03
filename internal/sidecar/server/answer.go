package server

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"
)

// answer is the [http.ResponseWriter] of a request to the main listener. It knows what was sent. Flush, and by Unwrap all
// that [http.ResponseController] can do, reach the connection.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	id      string // of the request, for the client
	status  int    // 0: nothing sent yet
	bytes   int64
	origin  string // of a web page that may read the answer; "" for programs
	ours    bool   // the handler's answer was replaced, what it writes is dropped
	stall   stall

	// refusal is what ended the body before its end, a status of 400 or more: the handler's complaint about a broken
	// body becomes that. Set by the reader of the body.
	refusal atomic.Int32
}

func newAnswer(w http.ResponseWriter, r *http.Request, id string, s stall) *answer {
	a := &answer{ResponseWriter: w, control: http.NewResponseController(w), id: id, stall: s}
	a.stall.multiplexed = r.ProtoMajor > 1
	a.Header().Set(requestIDHeader, id)
	return a
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader begins the answer, unless it has begun.
func (a *answer) WriteHeader(code int) {
	switch {
	case a.status != 0:
		return
	case code >= 100 && code < 200 && code != http.StatusSwitchingProtocols:
		a.ResponseWriter.WriteHeader(code)
		return
	}
	h := a.Header()
	if h.Get(requestIDHeader) == "" { // httputil's proxy clears headers behind an informational answer
		h.Set(requestIDHeader, a.id)
	}
	if a.origin != "" {
		allowOrigin(h, a.origin)
	}
	if refusal := int(a.refusal.Load()); code >= 400 && refusal != 0 && (refusal != code || refusal == http.StatusServiceUnavailable) {
		a.ours, a.status = true, refusal
		if refusal == http.StatusServiceUnavailable {
			h.Set("Retry-After", "1")
		}
		a.bytes += sendDetail(a.ResponseWriter, refusal, refusals[refusal])
		return
	}
	a.status = code
	a.ResponseWriter.WriteHeader(code)
}

// Write sends a part of the body.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if a.ours {
		return len(p), nil
	}
	total := 0
	for { // in pieces, so that a long part has as long as it needs while it moves
		piece := p[total:min(len(p), total+mostAtOnce)]
		wait := a.mayWait(len(piece))
		if wait {
			a.writes()
		}
		n, err := a.ResponseWriter.Write(piece)
		if wait {
			a.written()
		}
		a.bytes += int64(n)
		total += n
		if err != nil || total >= len(p) {
			return total, a.failed(err)
		}
	}
}

// Flush sends what is buffered.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError sends what is buffered.
func (a *answer) FlushError() error {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.writes()
	err := a.control.Flush()
	a.stall.pending = 0
	a.written()
	return a.failed(err)
}

// refuse answers a request that is not let in, and closes its connection: it gets no place to wait for the next one, and its body
// is not waited for.
func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Connection", "close")
	sendDetail(w, code, text)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // else net/http reads up to 256 KiB of the body
}

// sendDetail answers as all of the API does, and returns the length of the body.
func sendDetail(w http.ResponseWriter, code int, text string) int64 {
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified", "Cache-Control"} {
		h.Del(name) // of an answer that was begun and given up
	}
	return sendJSON(w, code, map[string]string{"detail": text})
}

func sendJSON(w http.ResponseWriter, code int, members map[string]string) int64 {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	text, _ := json.Marshal(members) // of strings: cannot fail
	n, _ := w.Write(text)            // a client that is gone reads no answer
	return int64(n)
}
