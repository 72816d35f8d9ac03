//go:build linux

package faulttest_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	chatPath  = "/v1/chat/completions"
	passPath  = "/v1/embeddings" // passes without being read
	plainPath = "/v1/completions"
)

// request is what a client sends.
type request struct {
	id, path string
	body     []byte
	header   []string // names and values in turn
}

// requestNumber counts requests, so that each has its own.
var requestNumber atomic.Int64

func newRequest(path string, body []byte) request {
	return request{id: fmt.Sprint("r-", requestNumber.Add(1)), path: path, body: body}
}

// wholeChat asks for an answer of so many tokens.
func wholeChat(tokens int) request { return chatOf(tokens, "false") }

// streamChat asks for a stream of so many tokens.
func streamChat(tokens int) request {
	return chatOf(tokens, `true,"stream_options":{"include_usage":true}`)
}

func chatOf(tokens int, stream string) request {
	n := requestNumber.Load()
	return newRequest(
		chatPath,
		fmt.Appendf(
			nil,
			`{"model":"m","messages":[{"role":"user","content":"Question %d: what is it?"}],"stream":%s,"max_tokens":%d,"seed":%d}`,
			n,
			stream,
			tokens,
			n,
		),
	)
}

// reply is what a client got. An answer that broke off has a code and an error.
type reply struct {
	request
	code   int // 0: none came
	header http.Header
	body   []byte
	err    error
}

func (r reply) String() string {
	return fmt.Sprintf("%s %s: status %d, error %v, %d bytes: %.200s", r.id, r.path, r.code, r.err, len(r.body), r.body)
}

// complete reports whether the client may take the answer for whole.
func (r reply) complete() bool { return r.code != 0 && r.err == nil }

// ended reports whether a stream came to its end.
func (r reply) ended() bool { return bytes.HasSuffix(r.body, []byte("data: [DONE]\n\n")) }

// ledger holds what all clients of a test sent and got.
type ledger struct {
	mu  sync.Mutex
	all []reply // guarded by mu
}

func (l *ledger) add(r reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
}

// send sends a request and reads the answer to its end.
func (s *sidecar) send(t *testing.T, q request) reply {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	return s.sendWatched(ctx, q, func([]byte) {})
}

// sendWatched gives watch what has arrived of the answer, each time that there is more.
func (s *sidecar) sendWatched(ctx context.Context, q request, watch func(body []byte)) reply {
	r := s.exchange(ctx, q, watch)
	s.ledger.add(r)
	return r
}

func (s *sidecar) exchange(ctx context.Context, q request, watch func(body []byte)) reply {
	r := reply{request: q}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+q.path, bytes.NewReader(q.body))
	if err != nil {
		r.err = err
		return r
	}
	sendOnce(req)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", q.id)
	for i := 0; i < len(q.header); i += 2 {
		req.Header.Set(q.header[i], q.header[i+1])
	}
	res, err := s.client.Do(req)
	if err != nil {
		r.err = err
		return r
	}
	defer res.Body.Close()
	r.code, r.header = res.StatusCode, res.Header
	var b bytes.Buffer
	for part := make([]byte, 32<<10); ; {
		n, err := res.Body.Read(part)
		b.Write(part[:n])
		r.body = b.Bytes()
		if n > 0 {
			watch(r.body)
		}
		if errors.Is(err, io.EOF) {
			return r
		}
		if r.err = err; err != nil {
			return r
		}
	}
}

// errTwice is the error of a request that net/http wanted to send again.
var errTwice = errors.New("the body would be sent twice")

// sendOnce keeps net/http from sending a body twice behind the test's back. Over HTTP/2 it may try again with a body of which
// it has read nothing: where a connection turns out to have no room for one more stream, it closes the body without having
// sent anything.
func sendOnce(req *http.Request) {
	req.GetBody = nil
	if req.URL.Scheme != "https" || req.Body == http.NoBody {
		return
	}
	body := &tracked{ReadCloser: req.Body} // its Close does nothing
	req.Body = body
	req.GetBody = func() (io.ReadCloser, error) {
		if body.begun.Load() {
			return nil, errTwice
		}
		return body, nil
	}
}

// tracked is a body that knows whether anything was read of it.
type tracked struct {
	io.ReadCloser
	begun atomic.Bool
}

func (b *tracked) Read(p []byte) (int, error) {
	b.begun.Store(true)
	return b.ReadCloser.Read(p)
}

// skipping is a protocol that leaves all requests to its transport, after it has read so many bytes of the body and closed
// it. With 0 it does what net/http's HTTP/2 does if no connection has room.
type skipping int

func (n skipping) RoundTrip(req *http.Request) (*http.Response, error) {
	_, err := io.ReadFull(req.Body, make([]byte, n))
	return nil, cmp.Or(err, req.Body.Close(), http.ErrSkipAltProtocol)
}

// TestSendOnce: a body of which nothing was read may be taken for another attempt, and no other body.
func TestSendOnce(t *testing.T) {
	var arrived atomic.Int64
	up := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(up.Close)
	authorities := x509.NewCertPool()
	authorities.AddCert(up.Certificate())
	for read, want := range map[skipping]error{0: nil, 1: errTwice} {
		client := newClient(t, nil)
		transport := client.Transport.(*http.Transport)
		transport.TLSClientConfig = &tls.Config{RootCAs: authorities}
		transport.RegisterProtocol("https", read)
		s := &sidecar{url: up.URL, client: client}
		arrived.Store(0)
		r := s.exchange(t.Context(), newRequest(chatPath, []byte("a body")), func([]byte) {})
		switch {
		case !errors.Is(r.err, want):
			t.Errorf("%d bytes read: %v, want the error %v", read, r, want)
		case want != nil && arrived.Load() != 0, want == nil && (string(r.body) != "a body" || arrived.Load() != 1):
			t.Errorf("%d bytes read: %d requests arrived, and %v", read, arrived.Load(), r)
		}
	}
}

// account checks that no turn was lost, doubled or invented, that each arrived as it was sent, and that clients got
// what the upstream said. Arrivals that were read from a file have no answers to compare.
func (l *ledger) account(t *testing.T, arrivals []*arrival, answers bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	got := map[string]*arrival{}
	for _, a := range arrivals {
		if got[a.ID] != nil {
			t.Errorf("%s arrived twice", a.ID)
		}
		got[a.ID] = a
	}
	for _, r := range l.all {
		a := got[r.id]
		delete(got, r.id)
		switch {
		case a == nil && r.complete() && r.code < 300:
			t.Errorf("answered, but not asked of the upstream: %v", r)
		case a == nil:
		case a.broken == nil && faithful(r.request.body, a.Body) != nil:
			t.Errorf("%s: %v", r.id, faithful(r.request.body, a.Body))
		case answers && r.complete() && r.code < 300 && !bytes.Equal(r.body, a.answer):
			t.Errorf("%s: the client got\n%.500s\nand the upstream said\n%.500s", r.id, r.body, a.answer)
		}
	}
	for id, a := range got {
		t.Errorf("%s %q arrived, and no client sent it: %.200s", a.Path, id, a.Body)
	}
}

// dial opens a connection on which the test writes bytes of its own.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// head is the beginning of a request.
func head(path string, lines ...string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: sidecar\r\n" + strings.Join(append(lines, "\r\n"), "\r\n")
}
