package httpload

import (
	"bufio"
	"io"
	"net/http"
	"time"
)

// For tests of the package's outside.
var (
	MedianInterval = medianInterval
	Watch          = watch
)

// ReadEvents returns the data of all events of a stream, the bytes read, and what ended it, io.EOF for a clean end.
func ReadEvents(r io.Reader, buffer int) (data []string, n int64, err error) {
	e := newEvents(r, bufio.NewReaderSize(nil, buffer))
	for {
		d, err := e.next()
		if err != nil {
			return data, e.Bytes(), err
		}
		data = append(data, string(d))
	}
}

// CheckStream returns what is wrong with a stream of so many tokens from a seed on; empty: nothing.
func CheckStream(body io.Reader, seed int64, tokens int) string {
	var o outcome
	c := streamCheck{text: numberCheck{seed: seed}, tokens: tokens}
	c.read(&http.Response{Body: io.NopCloser(body), Header: http.Header{"Content-Type": {"text/event-stream"}}}, &o)
	return o.problem
}

// Dues returns when requests are due.
func Dues(l Load, span time.Duration) []time.Duration { return l.dues(span) }
