package h1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"sync"
	"time"
)

// MaxBody is the length in bytes of the longest request body that is sent from the asking goroutine. An upstream that
// answers before it has read such a body cannot block us: the rest fits into the buffers between.
const MaxBody = 256 << 10

// maxHeader bounds the bytes of an answer's status line and headers, as net/http's own transport does.
const maxHeader = 10 << 20

// Transport is an http.RoundTripper. Safe for concurrent use; its fields must not change after the first request.
//
// A request is sent once: one that fails is sent again only if it has no body, its method is GET or HEAD, and the
// connection was an old one that the upstream may have closed in the same moment.
type Transport struct {
	// Dial opens connections.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// HeaderTimeout bounds the time from the end of a request to the headers of its answer; 0: none.
	HeaderTimeout time.Duration
	// IdleTimeout is how long an unused connection is kept; 0: 90 s.
	IdleTimeout time.Duration
	// MaxIdle is the number of unused connections that are kept for a host; 0: 1024.
	MaxIdle int
	// Proxy names the proxy for a request, as http.Transport's does; nil: none.
	Proxy func(*http.Request) (*url.URL, error)
	// Other takes what this transport does not: TLS, proxies, upgrades, long bodies and those of unknown length.
	Other http.RoundTripper

	pool pool
}

var _ http.RoundTripper = (*Transport)(nil)

// errTimeout says that an upstream took too long to begin its answer.
var errTimeout net.Error = timeoutError{}

type timeoutError struct{}

func (timeoutError) Error() string   { return "timeout awaiting response headers" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }
func (timeoutError) Unwrap() error   { return os.ErrDeadlineExceeded }

// RoundTrip sends a request and returns when the headers of its answer are there.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.takes(req) {
		return t.Other.RoundTrip(req)
	}
	for {
		resp, old, err := t.try(req)
		if err == nil {
			return resp, nil
		}
		again := old && req.Context().Err() == nil && bodyless(req) && (req.Method == http.MethodGet || req.Method == http.MethodHead)
		if !again {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, err
		}
	}
}

// CloseIdleConnections closes unused connections.
func (t *Transport) CloseIdleConnections() {
	t.pool.close()
	if o, ok := t.Other.(interface{ CloseIdleConnections() }); ok {
		o.CloseIdleConnections()
	}
}

// takes reports whether this transport serves a request.
func (t *Transport) takes(req *http.Request) bool {
	if req.URL == nil || req.URL.Scheme != "http" || req.URL.Host == "" || req.Method == http.MethodConnect {
		return false
	}
	if !bodyless(req) && (req.ContentLength <= 0 || req.ContentLength > MaxBody || req.GetBody == nil) {
		return false // GetBody: those that have one have it in memory
	}
	for _, name := range [...]string{"Upgrade", "Expect", "Trailer"} {
		if len(req.Header[name]) > 0 {
			return false
		}
	}
	if len(req.TransferEncoding) > 0 || len(req.Trailer) > 0 {
		return false
	}
	if t.Proxy != nil {
		if proxy, err := t.Proxy(req); err != nil || proxy != nil {
			return false
		}
	}
	return true
}

func bodyless(req *http.Request) bool { return req.Body == nil || req.Body == http.NoBody }

// try sends a request over one connection. old tells that the connection had been used before and that no byte of an
// answer came.
func (t *Transport) try(req *http.Request) (resp *http.Response, old bool, err error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, false, context.Cause(ctx)
	}
	c, err := t.conn(ctx, address(req.URL))
	if err != nil {
		return nil, false, err
	}
	stop := context.AfterFunc(ctx, c.kill)
	resp, err = t.exchange(c, req)
	if err != nil {
		stop()
		c.kill()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, c.used && !c.answered, err
	}
	switching := resp.StatusCode == http.StatusSwitchingProtocols // it was not asked for
	b := &body{src: resp.Body, conn: c, t: t, ctx: ctx, stop: stop, keep: !resp.Close && !req.Close && !c.broken && !switching}
	if resp.Body == http.NoBody || switching {
		b.end(b.keep)
		resp.Body = http.NoBody
	} else {
		resp.Body = b
	}
	return resp, false, nil
}

// exchange writes a request and reads the head of its answer.
func (t *Transport) exchange(c *conn, req *http.Request) (*http.Response, error) {
	if err := c.write(req); err != nil {
		// An upstream that does not want the request may answer and close before it has read all.
		c.broken = true
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		resp, rerr := c.read(req)
		if rerr != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
		_ = c.SetReadDeadline(time.Time{})
		return resp, nil
	}
	if t.HeaderTimeout > 0 {
		_ = c.SetReadDeadline(time.Now().Add(t.HeaderTimeout))
	}
	resp, err := c.read(req)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errTimeout
	case err != nil:
		return nil, fmt.Errorf("read response: %w", err)
	}
	if t.HeaderTimeout > 0 {
		_ = c.SetReadDeadline(time.Time{})
	}
	return resp, nil
}

// fresh is the key of a context whose requests are sent over new connections.
type fresh struct{}

// WithFresh returns a context whose requests are sent over new connections. It is for requests that are sent at the moment when another
// answer has ended: llama-server closes a connection after a streamed answer without saying so, and the request would meet that.
func WithFresh(ctx context.Context) context.Context { return context.WithValue(ctx, fresh{}, true) }

// conn returns a connection that was kept, or a new one.
func (t *Transport) conn(ctx context.Context, address string) (*conn, error) {
	if ctx.Value(fresh{}) == nil {
		if c := t.pool.take(address); c != nil {
			return c, nil
		}
	}
	nc, err := t.Dial(ctx, "tcp", address)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c := &conn{Conn: nc, address: address}
	c.r = bufio.NewReader((*limited)(c))
	return c, nil
}

func (t *Transport) release(c *conn) {
	c.used, c.answered = true, false
	idle, most := t.IdleTimeout, t.MaxIdle
	if idle <= 0 {
		idle = 90 * time.Second
	}
	if most <= 0 {
		most = 1024
	}
	t.pool.put(c, idle, most)
}

// address returns host and port of an http URL.
func address(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

// conn is one connection, used by one request at a time.
type conn struct {
	net.Conn
	address  string
	r        *bufio.Reader
	left     int  // bytes that may still be read; see limited
	used     bool // by an earlier request
	answered bool // a byte of the present answer came
	broken   bool // the request was not written to its end
	since    time.Time
}

// kill closes the connection; a goroutine that waits for it goes on with an error.
func (c *conn) kill() { _ = c.Close() }

// limited reads from a connection as long as it is allowed to.
type limited conn

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("response headers of more than %d bytes", maxHeader)
	}
	if l.left < len(p) {
		p = p[:l.left]
	}
	n, err := l.Conn.Read(p)
	l.left -= n
	l.answered = l.answered || n > 0
	return n, err
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 32<<10) }}

// write sends a request, in one piece if it is short.
func (c *conn) write(req *http.Request) error {
	w, _ := writers.Get().(*bufio.Writer)
	w.Reset(c.Conn)
	defer func() {
		w.Reset(nil)
		writers.Put(w)
	}()
	err := req.Write(w)
	if failed := w.Flush(); failed != nil {
		return failed // what the connection said; Write hides it behind an error of its own
	}
	return err
}

// read returns the answer without its body. Interim answers are passed to the request's trace.
func (c *conn) read(req *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(req.Context())
	for interim := 0; ; interim++ {
		c.left = maxHeader
		if trace != nil && trace.GotFirstResponseByte != nil && interim == 0 {
			if _, err := c.r.Peek(1); err == nil {
				trace.GotFirstResponseByte()
			}
		}
		resp, err := http.ReadResponse(c.r, req)
		if errors.Is(err, io.ErrUnexpectedEOF) && !c.answered {
			err = io.EOF
		}
		if err != nil {
			return nil, err
		}
		if resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols {
			c.left = int(^uint(0) >> 1) // the body has no bound of ours
			return resp, nil
		}
		if interim == 5 {
			return nil, errors.New("too many 1xx informational responses")
		}
		if trace != nil && trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(resp.StatusCode, textproto.MIMEHeader(resp.Header)); err != nil {
				return nil, err
			}
		}
	}
}
