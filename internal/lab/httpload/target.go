package httpload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/sse"
)

// Target is where requests go.
type Target struct {
	Name   string // the base URL, without a password
	url    string
	header http.Header
	client *http.Client
}

// NewTarget returns the target at a base URL such as http://127.0.0.1:8000; without a path, /v1 is added, then the
// endpoint's path such as /chat/completions. An apiKey, if not empty, is sent as bearer token. client may be nil: a
// new one with as many connections as needed.
func NewTarget(base, path, apiKey string, client *http.Client) (*Target, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		if strings.Contains(base, "@") { // may hold a password
			base = "(not shown)"
		}
		return nil, fmt.Errorf("%q: want a base URL such as http://127.0.0.1:8000", base)
	}
	if u.Path = strings.TrimRight(u.Path, "/"); u.Path == "" {
		u.Path = "/v1"
	}
	t := &Target{Name: u.Redacted(), client: client, header: http.Header{"Content-Type": {"application/json"}}}
	t.url = u.String() + "/" + strings.TrimLeft(path, "/")
	if apiKey != "" {
		t.header.Set("Authorization", "Bearer "+apiKey)
	}
	if t.client == nil {
		t.client = &http.Client{Transport: &http.Transport{
			Proxy:              http.ProxyFromEnvironment,
			DialContext:        (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			MaxIdleConns:       1 << 16,
			DisableCompression: true, MaxIdleConnsPerHost: 1 << 16,
			IdleConnTimeout: 4 * time.Second, // uvicorn closes its own after 5 s
		}}
	}
	return t, nil
}

// Close closes idle connections.
func (t *Target) Close() { t.client.CloseIdleConnections() }

// outcome is what became of one request.
type outcome struct {
	problem  string // a class; empty: the answer was complete
	detail   string // of the problem
	first    time.Time
	sent, in int64 // bytes of bodies
}

// fail sets the problem of an error.
func (o *outcome) fail(class string, err error) { o.problem, o.detail = class, err.Error() }

// classOf sorts the errors of a connection.
func classOf(err error) string {
	op, ok := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case ok && op.Op == "dial":
		return "no connection"
	}
	for _, class := range []error{errInStream, errMalformed, errCorrupt} {
		if errors.Is(err, class) {
			return class.Error()
		}
	}
	return "broken connection"
}

// readers keeps the buffers of streams.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// do sends a body and gives the answer, whose status is 2xx, to read. The outcome then has what read set and the
// bytes it counted.
func (t *Target) do(ctx context.Context, body []byte, id string, read func(*http.Response, *outcome)) (o outcome) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		o.fail("bad request", err)
		return o
	}
	r.Header = t.header.Clone()
	r.Header.Set("X-Request-Id", id)
	response, err := t.client.Do(r)
	if err != nil {
		o.fail(classOf(err), err)
		return o
	}
	defer response.Body.Close()
	o.sent = int64(len(body))
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		o.in = int64(len(text))
		o.fail(fmt.Sprint("status ", response.StatusCode), errors.New(string(text)))
		return o
	}
	read(response, &o)
	return o
}

// isStream reports whether an answer is a stream.
func isStream(r *http.Response) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream")
}

// shoot sends a body and reads the answer to its end.
func (t *Target) shoot(ctx context.Context, body []byte, id string) outcome {
	return t.do(ctx, body, id, func(r *http.Response, o *outcome) {
		if isStream(r) {
			readStream(r.Body, o)
			return
		}
		n, err := io.Copy(io.Discard, r.Body)
		if o.in = n; err != nil {
			o.fail(classOf(err), err)
		}
	})
}

// readStream reads a stream, whose last event must be [DONE]. Chunks are only decoded until one has text.
func readStream(body io.Reader, o *outcome) {
	buffer := readers.Get().(*bufio.Reader)
	defer func() {
		buffer.Reset(nil)
		readers.Put(buffer)
	}()
	e := newEvents(body, buffer)
	complete := e.all(o, incomplete, func(data []byte) error {
		if !o.first.IsZero() && !bytes.HasPrefix(data, []byte(`{"error"`)) {
			return nil
		}
		c, err := parseChunk(data)
		if err == nil && o.first.IsZero() && c.text() != "" {
			o.first = time.Now()
		}
		return err
	})
	if complete && !e.done {
		o.fail(incomplete, errors.New("no [DONE]"))
	}
}

// maxEvent bounds an event of a stream, in bytes.
const maxEvent = 1 << 20

// events reads the data of server-sent events.
type events struct {
	*sse.Reader
	done bool // [DONE] has come
}

// newEvents reads through a buffer, which is reset.
func newEvents(r io.Reader, buffer *bufio.Reader) *events {
	buffer.Reset(r)
	return &events{Reader: sse.NewReader(buffer, maxEvent)}
}

// next returns the data of the next event, valid until the next call. At the end it returns io.EOF, and
// io.ErrUnexpectedEOF if the last line has no end.
func (e *events) next() ([]byte, error) {
	event, err := e.Next()
	if e.Cut() {
		return nil, io.ErrUnexpectedEOF
	}
	return bytes.TrimSpace(event.Data), err
}

// all gives the data of each event but [DONE] to take, and sets the problem if the stream is broken or goes on behind [DONE], which is
// a problem of class behind. It reports whether the stream came to its end.
func (e *events) all(o *outcome, behind string, take func(data []byte) error) bool {
	for {
		data, err := e.next()
		o.in = e.Bytes()
		switch {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			o.fail(classOf(err), err)
			return false
		case e.done:
			o.fail(behind, errors.New("more behind [DONE]"))
			return false
		case string(data) == "[DONE]":
			e.done = true
			continue
		}
		if err := take(data); err != nil {
			o.fail(classOf(err), err)
			return false
		}
	}
}

// chunk is what is read of one event.
type chunk struct {
	ID      string `json:"id"`
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		Text   string `json:"text"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Output int `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// text returns the text of the first choice.
func (c *chunk) text() string {
	if len(c.Choices) == 0 {
		return ""
	}
	return c.Choices[0].Delta.Content + c.Choices[0].Text
}

var (
	errInStream  = errors.New("error in stream")
	errMalformed = errors.New("malformed chunk")
	errCorrupt   = errors.New(corrupt)
)

func parseChunk(data []byte) (*chunk, error) {
	c := new(chunk)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return nil, fmt.Errorf("%w: %s", errInStream, c.Error)
	}
	return c, nil
}
