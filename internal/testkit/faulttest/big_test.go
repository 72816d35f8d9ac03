//go:build linux

package faulttest_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

const mib = 1 << 20

// TestBigBody: a gigabyte is refused long before it was sent, whatever it says of its length, and takes no memory to
// speak of.
func TestBigBody(t *testing.T) {
	faults(t)
	const limit, slack = 64 * mib, 64 * mib // of the server; of what the system holds on its way
	for _, c := range []struct {
		name, path string
		header     []string
		want       int
		most       int64 // that is sent until the answer is there
	}{
		{"length", chatPath, []string{"Content-Length: 1073741824"}, http.StatusRequestEntityTooLarge, slack},
		{
			"length, to be asked for", chatPath,
			[]string{"Content-Length: 1073741824", "Expect: 100-continue"},
			http.StatusRequestEntityTooLarge,
			slack,
		},
		{"length, passing", passPath, []string{"Content-Length: 1073741824"}, http.StatusRequestEntityTooLarge, slack},
		{"chunked", chatPath, []string{chunked}, http.StatusRequestEntityTooLarge, limit + slack},
		{"chunked, a completion", plainPath, []string{chunked}, http.StatusRequestEntityTooLarge, limit + slack},
		{"chunked, passing", passPath, []string{chunked}, http.StatusRequestEntityTooLarge, limit + slack},
		{"chunked, to the index", "/reorder", []string{chunked}, http.StatusRequestEntityTooLarge, limit + slack},
		{"chunked, to nothing", "/nothing", []string{chunked}, http.StatusNotFound, slack},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t, upstream.Options{})
			s := serve(t, e.URL, "")
			before := s.atRest(t, e)
			began := time.Now()
			code, sent := pour(t, s.addr, c.path, c.header, 1024*mib)
			if code != c.want || sent > c.most {
				t.Errorf("%d when %d MiB were sent, want %d before %d MiB", code, sent/mib, c.want, c.most/mib)
			}
			took := time.Since(began)
			s.recovered(t, e, before)
			peak := s.peakMiB(t)
			if peak >= 200 {
				t.Errorf("%d MiB of memory", peak)
			}
			t.Logf("%d after %v and %d MiB; %d MiB of memory", code, took, sent/mib, peak)
			for _, a := range e.arrivals(t) {
				if len(a.Body) > limit || a.Path != chatPath && a.broken == nil {
					t.Errorf("the upstream took %d bytes to %s: %v", len(a.Body), a.Path, a.broken)
				}
			}
		})
	}
}

const chunked = "Transfer-Encoding: chunked"

// pour sends a body until an answer is there, and returns its status and how much was sent till then.
func pour(t *testing.T, addr, path string, header []string, size int64) (code int, sent int64) {
	t.Helper()
	conn := dial(t, addr)
	fmt.Fprint(conn, head(path, header...))
	part := bytes.Repeat([]byte(" "), mib/2)
	if header[0] == chunked {
		part = fmt.Appendf(nil, "%x\r\n%s\r\n", len(part), part)
	}
	var written atomic.Int64
	var writer sync.WaitGroup
	writer.Go(func() {
		for written.Load() < size {
			n, err := conn.Write(part)
			if written.Add(int64(n)); err != nil {
				return // closed, by the server or below
			}
		}
	})
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if sent = written.Load(); err == nil {
		code = res.StatusCode
		_, _ = io.Copy(io.Discard, res.Body) // may break off: the server does not read on
		res.Body.Close()
	} else {
		t.Errorf("no answer: %v", err)
	}
	_ = conn.Close()
	writer.Wait()
	return code, sent
}
