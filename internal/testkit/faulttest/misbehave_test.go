//go:build linux

package faulttest_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
)

// rawUpstream answers one request on each connection, with the bytes of a script that the header X-Fault names.
type rawUpstream struct {
	url     string
	scripts map[string]func(io.Writer)
}

func newRawUpstream(t *testing.T, scripts map[string]func(io.Writer)) *rawUpstream {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &rawUpstream{url: "http://" + listener.Addr().String(), scripts: scripts}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { u.serve(conn) })
		}
	})
	return u
}

func (u *rawUpstream) serve(conn net.Conn) {
	defer conn.Close()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	if script := u.scripts[r.Header.Get("X-Fault")]; script != nil {
		script(conn)
		return
	}
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
}

// says is a script of fixed bytes.
func says(text string) func(io.Writer) {
	return func(w io.Writer) { _, _ = io.WriteString(w, text) }
}

// misbehaviour is a script, and what the client should get.
type misbehaviour struct {
	script func(io.Writer)
	code   int
	body   string
	broken bool
}

// is reports whether a reply is the right one. Of an answer that breaks off the client may see less, down to nothing but the
// closed connection, and where nothing was sent yet it may be a 502; what it must not be is complete.
func (m misbehaviour) is(r reply) bool {
	switch {
	case r.code == http.StatusBadGateway && r.err == nil:
		return m.code == http.StatusBadGateway || m.broken
	case m.broken:
		return r.err != nil && (r.code == m.code || r.code == 0) && strings.HasPrefix(m.body, string(r.body))
	}
	return r.code == m.code && r.err == nil && string(r.body) == m.body
}

const (
	ok      = "HTTP/1.1 200 OK\r\n"
	sse     = ok + "Content-Type: text/event-stream\r\n"
	inParts = sse + "Transfer-Encoding: chunked\r\n\r\n"
)

// TestMisbehavingUpstream: whatever comes instead of an answer, the client gets a 502, or as much of the answer as there
// was and an end that shows that it is not whole.
func TestMisbehavingUpstream(t *testing.T) {
	faults(t)
	odd := "data: {\"a\":\n\ndata:\n\n:comment\nevent\n\n\xff\xfe\x00\ndata: [DONE]\ndata: [DONE]\n\nretry: x\r\rid\n"
	long := "data: " + strings.Repeat("x", 3*mib)
	cases := map[string]misbehaviour{
		"nothing":                  {says(""), 502, "", false},
		"garbage":                  {says("\x00\xff\x16\x03 this is no HTTP\r\n\r\n"), 502, "", false},
		"another protocol":         {says("SSH-2.0-OpenSSH_9.6\r\n"), 502, "", false},
		"TLS":                      {says("\x15\x03\x01\x00\x02\x02\x28"), 502, "", false},
		"half a status line":       {says("HTTP/1.1 20"), 502, "", false},
		"half a header":            {says(ok + "Content-Ty"), 502, "", false},
		"no status":                {says("HTTP/1.1  OK\r\n\r\n"), 502, "", false},
		"a status of 99":           {says("HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n"), 502, "", false},
		"a header without name":    {says(ok + ": x\r\n\r\n"), 502, "", false},
		"two lengths":              {says(ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy"), 502, "", false},
		"a length below zero":      {says(ok + "Content-Length: -1\r\n\r\nx"), 502, "", false},
		"a length of words":        {says(ok + "Content-Length: many\r\n\r\nx"), 502, "", false},
		"an encoding of its own":   {says(ok + "Transfer-Encoding: zip\r\n\r\nx"), 502, "", false},
		"headers without end":      {endlessHeaders, 502, "", false},
		"another protocol unasked": {says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nx"), 502, "", false},
		"too short":                {says(ok + "Content-Length: 10\r\n\r\nshort"), 200, "short", true},
		"too long":                 {says(ok + "Content-Length: 4\r\n\r\nfour, and more than that"), 200, "four", false},
		"cut between chunks":       {says(inParts + "5\r\nhello\r\n"), 200, "hello", true},
		"cut in a chunk":           {says(inParts + "ff\r\nhello"), 200, "hello", true},
		"chunks of words":          {says(inParts + "5\r\nhello\r\nmany\r\nx\r\n0\r\n\r\n"), 200, "hello", true},
		"a chunk of 16 EiB":        {says(inParts + "5\r\nhello\r\nffffffffffffffff\r\nx"), 200, "hellox", true},
		"no chunks":                {says(inParts + "this is no chunk"), 200, "", true},
		"until it closes":          {says(sse + "\r\ndata: 1\n\n"), 200, "data: 1\n\n", false},
		"HTTP 1.0":                 {says("HTTP/1.0 200 OK\r\n\r\nold"), 200, "old", false},
		"odd events":               {says(sse + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(odd)) + odd), 200, odd, false},
		"odd events in parts":      {says(inParts + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(odd), odd)), 200, odd, false},
		"one endless event":        {says(inParts + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(long), long)), 200, long, false},
		"single bytes":             {says(inParts + strings.Repeat("1\r\nx\r\n", 5000) + "0\r\n\r\n"), 200, strings.Repeat("x", 5000), false},
		"JSON that is none": {
			says(ok + "Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"usage\":{\"promp"),
			200,
			`{"usage":{"promp`,
			false,
		},
		"odd usage": {
			says(ok + "Content-Length: 68\r\n\r\n" + `{"usage":{"prompt_tokens":-1e300,"completion_tokens":1e999,"x":[[[}}`),
			200,
			`{"usage":{"prompt_tokens":-1e300,"completion_tokens":1e999,"x":[[[}}`,
			false,
		},
		"an error":                 {says("HTTP/1.1 500 X\r\nContent-Length: 2\r\n\r\nno"), 500, "no", false},
		"a status of its own":      {says("HTTP/1.1 799 X\r\nContent-Length: 2\r\n\r\nno"), 799, "no", false},
		"no content, with content": {says("HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nxx"), 204, "", false},
	}
	scripts := map[string]func(io.Writer){}
	for name, c := range cases {
		scripts[name] = c.script
	}
	scripts["large"] = large
	scripts["hints"] = says(
		"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + ok + "Content-Length: 2\r\n\r\n{}",
	)
	scripts["trailers"] = says(
		ok + "Trailer: X-Sum, X-Late\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 12\r\nX-Late: yes\r\nX-Unannounced: too\r\n\r\n",
	)
	s := serve(t, newRawUpstream(t, scripts).url, "")
	s.alive(t)
	var before vitals
	eventually(t, "rest", func() bool {
		was := before
		before, _ = s.vitals(t)
		return before == was
	})

	// On a connection that the engine has left a request may be lost, and is not sent again: nobody knows whether it was
	// read. So each of them waits for the end of the one before.
	quiet := func() {
		eventually(t, "end of the engine's connection", func() bool { return s.files(t) <= before.files })
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{chatPath, plainPath, passPath} {
				q := wholeChat(1)
				q.path, q.header = path, []string{"X-Fault", name}
				if r := s.send(t, q); !c.is(r) {
					t.Errorf("got %v", r)
				}
				quiet()
			}
			s.alive(t)
			quiet()
		})
	}
	t.Run("200 MB", func(t *testing.T) {
		was := s.peakMiB(t)
		quiet()
		size, sum := s.take(t, chatPath)
		if want := largeSum(); size != largeParts*mib || !bytes.Equal(sum, want) {
			t.Errorf("%d bytes, %x, want %x", size, sum, want)
		}
		now := s.peakMiB(t)
		if now-was > 32 {
			t.Errorf("memory grew by %d MiB", now-was)
		}
		t.Logf("%d MiB of memory, %d before", now, was)
	})
	t.Run("hints", func(t *testing.T) { s.hints(t, quiet) })
	t.Run("trailers", func(t *testing.T) { s.trailers(t, quiet) })
	quiet()
	s.recovered(t, nil, before)
}

// endlessHeaders writes headers until nobody listens.
func endlessHeaders(w io.Writer) {
	line := []byte("X-Flood: " + strings.Repeat("x", 1000) + "\r\n")
	_, err := io.WriteString(w, ok)
	for n := 0; err == nil && n < 100*mib; n += len(line) {
		_, err = w.Write(line)
	}
}

const largeParts = 200

// large writes an answer of 200 MiB.
func large(w io.Writer) {
	fmt.Fprintf(w, "%sContent-Length: %d\r\n\r\n", ok, largeParts*mib)
	writeLarge(w)
}

// writeLarge writes parts that differ.
func writeLarge(w io.Writer) {
	part := bytes.Repeat([]byte("x"), mib)
	for i := range largeParts {
		part[i] = byte(i)
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

func largeSum() []byte {
	h := sha256.New()
	writeLarge(h)
	return h.Sum(nil)
}

// take reads the large answer without keeping it.
func (s *sidecar) take(t *testing.T, path string) (int64, []byte) {
	t.Helper()
	res := s.post(t, t.Context(), path, "large")
	defer res.Body.Close()
	h := sha256.New()
	n, err := io.Copy(h, res.Body)
	if err != nil {
		t.Error(err)
	}
	return n, h.Sum(nil)
}

// post sends a chat to a script.
//
//nolint:revive // the test comes first everywhere
func (s *sidecar) post(t *testing.T, ctx context.Context, path, script string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(`{"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Fault", script)
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// hints checks that informational answers pass, and that the answer behind them is as any other.
func (s *sidecar) hints(t *testing.T, quiet func()) {
	var codes []int
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		if codes = append(codes, code); code == http.StatusEarlyHints && h.Get("Link") != "</a>" {
			t.Errorf("headers of the hint: %v", h)
		}
		return nil
	}})
	for _, path := range []string{chatPath, passPath} {
		quiet()
		codes = nil
		res := s.post(t, ctx, path, "hints")
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if fmt.Sprint(codes) != "[103 102]" || res.StatusCode != http.StatusOK || string(text) != "{}" || err != nil {
			t.Errorf("%s: %v, then %d %q, %v", path, codes, res.StatusCode, text, err)
		}
		if res.Header.Get("X-Ragpilot-Request-Id") == "" {
			t.Errorf("%s: the answer has lost its headers: %v", path, res.Header)
		}
	}
}

// trailers checks that trailers pass, also those that were not announced.
func (s *sidecar) trailers(t *testing.T, quiet func()) {
	for _, path := range []string{chatPath, passPath} {
		quiet()
		res := s.post(t, t.Context(), path, "trailers")
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if got := res.Trailer; string(text) != "{}" || err != nil || got.Get("X-Sum") != "12" || got.Get("X-Late") != "yes" ||
			got.Get("X-Unannounced") != "too" {
			t.Errorf("%s: %q, %v, %v", path, text, err, got)
		}
	}
}
