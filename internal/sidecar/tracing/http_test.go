package tracing_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// upstream is a RoundTripper, a named fake, that keeps the headers it got.
type upstream struct {
	header http.Header
	status int
	body   io.ReadCloser
	err    error
}

func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	u.header = r.Header
	if u.err != nil {
		return nil, u.err
	}
	return &http.Response{StatusCode: u.status, Header: http.Header{}, Body: u.body, Request: r}, nil
}

// parts gives one part of a body at each Read, and then an error.
type parts struct {
	left   []string
	end    error
	closed bool
}

func (p *parts) Read(to []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, p.end
	}
	n := copy(to, p.left[0])
	p.left = p.left[1:]
	return n, nil
}

func (p *parts) Close() error {
	p.closed = true
	return nil
}

func request(ctx context.Context, t *testing.T, h http.Header) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://engine:8000/v1/chat/completions?key=hush", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = h
	return r
}

// TestTraceIsContinued: from the client through us to the upstream, as W3C Trace Context says.
func TestTraceIsContinued(t *testing.T) {
	const id, parent, state = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"
	ok := "00-" + id + "-" + parent + "-01"
	cases := []struct {
		name      string
		header    http.Header
		continued bool
		sampled   bool
		state     string
	}{
		{"none", http.Header{}, false, true, ""},
		{"recorded", http.Header{"Traceparent": {ok}}, true, true, ""},
		{"not recorded", http.Header{"Traceparent": {"00-" + id + "-" + parent + "-00"}}, true, false, ""},
		{"state", http.Header{"Traceparent": {ok}, "Tracestate": {state}}, true, true, state},
		{"state in two lines", http.Header{"Traceparent": {ok}, "Tracestate": strings.Split(state, ",")}, true, true, state},
		{"broken state", http.Header{"Traceparent": {ok}, "Tracestate": {"hush hush"}}, true, true, ""},
		{"state alone", http.Header{"Tracestate": {state}}, false, true, ""},
		{"later version", http.Header{"Traceparent": {"01-" + id + "-" + parent + "-01-more"}}, true, true, ""},
		{"twice", http.Header{"Traceparent": {ok, ok}}, false, true, ""},
		{"short", http.Header{"Traceparent": {ok[1:]}}, false, true, ""},
		{"upper case", http.Header{"Traceparent": {strings.ToUpper(ok)}}, false, true, ""},
		{"zero", http.Header{"Traceparent": {"00-00000000000000000000000000000000-" + parent + "-01"}}, false, true, ""},
		{"forbidden version", http.Header{"Traceparent": {"ff-" + id + "-" + parent + "-01"}}, false, true, ""},
	}
	form := regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-(0[0-3])$`)
	for _, below := range []bool{true, false} { // with a server span, or none
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				r := open(t, nil)
				u := &upstream{status: http.StatusOK, body: http.NoBody}
				ctx := t.Context()
				if below {
					ctx, _ = r.Server(ctx, c.header, http.MethodPost, "/v1/*")
				}
				given := c.header.Clone()
				resp, err := r.Transport(u).RoundTrip(request(ctx, t, given))
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if len(given) != len(c.header) || strings.Join(given["Traceparent"], "") != strings.Join(c.header["Traceparent"], "") {
					t.Error("the request was changed:", given)
				}
				found := form.FindStringSubmatch(u.header.Get("Traceparent"))
				if found == nil || len(u.header["Traceparent"]) != 1 {
					t.Fatal(u.header)
				}
				if (found[1] == id) != c.continued || found[2] == parent || (found[3] != "00" && found[3] != "02") != c.sampled {
					t.Errorf("traceparent %s of %v", found[0], c.header)
				}
				if got := strings.Join(u.header["Tracestate"], "|"); got != c.state {
					t.Errorf("tracestate %q, want %q", got, c.state)
				}
				spans := r.sent(t)
				if !c.sampled {
					if len(spans) != 0 {
						t.Error("recorded")
					}
					return
				}
				if s := spans[0]; s.SpanKind != trace.SpanKindClient || s.SpanContext.SpanID().String() != found[2] ||
					s.SpanContext.TraceID().String() != found[1] {
					t.Errorf("%v is not who asks: %s", s.SpanContext, found[0])
				}
			})
		}
	}
}

// TestForward: a span ends with the answer, says when it began, and of an error only its kind.
func TestForward(t *testing.T) {
	const base = "http.request.method=POST server.address=engine server.port=8000 http.request.body.size=4 "
	broken := errors.New("read tcp 10.0.0.1:1: hush")
	cases := []struct {
		name string
		up   *upstream
		read func(*testing.T, io.ReadCloser)
		want string
		code codes.Code
	}{
		{"whole", &upstream{
			status: 200, body: &parts{left: []string{"", "a", "b"}, end: io.EOF},
		}, all, "http.response.status_code=200 (first byte)", codes.Unset},
		{"empty", &upstream{status: 204, body: http.NoBody}, all, "http.response.status_code=204", codes.Unset},
		{"refused", &upstream{
			status: 429, body: &parts{left: []string{"hush"}, end: io.EOF},
		}, all, "http.response.status_code=429 error.type=429 (first byte)", codes.Error},
		{"broken off", &upstream{
			status: 200, body: &parts{left: []string{"a"}, end: broken},
		}, all, "http.response.status_code=200 error.type=connection (first byte)", codes.Error},
		{"late", &upstream{
			status: 200, body: &parts{end: context.DeadlineExceeded},
		}, all, "http.response.status_code=200 error.type=timeout", codes.Error},
		{"not read to its end", &upstream{
			status: 200, body: &parts{left: []string{"a", "b"}, end: io.EOF},
		}, one, "http.response.status_code=200 error.type=aborted (first byte)", codes.Error},
		{"another protocol", &upstream{status: 101, body: &parts{}}, func(t *testing.T, b io.ReadCloser) {
			if _, ok := b.(*parts); !ok {
				t.Errorf("a connection was replaced by %T", b)
			}
		}, "http.response.status_code=101", codes.Unset},
		{"no listener", &upstream{err: &url.Error{Op: "Post", URL: "http://hush", Err: broken}}, nil, "error.type=connection", codes.Error},
		{"client left", &upstream{err: context.Canceled}, nil, "error.type=canceled", codes.Error},
		{"too slow", &upstream{err: context.DeadlineExceeded}, nil, "error.type=timeout", codes.Error},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := open(t, nil)
			resp, err := r.Transport(c.up).RoundTrip(request(t.Context(), t, http.Header{}))
			if !errors.Is(err, c.up.err) {
				t.Fatal(err)
			}
			if err == nil {
				c.read(t, resp.Body)
				_ = resp.Body.Close()
				if p, ok := c.up.body.(*parts); ok && !p.closed {
					t.Error("not closed")
				}
			}
			spans := r.sent(t)
			if len(spans) != 1 || spans[0].Name != "forward" {
				t.Fatal(spans)
			}
			s := spans[0]
			if got := attributes(s); got != base+c.want {
				t.Errorf("%s, want %s", got, base+c.want)
			}
			if s.Status.Code != c.code || s.Status.Description != "" {
				t.Errorf("%+v, want %v", s.Status, c.code)
			}
		})
	}
}

func all(_ *testing.T, b io.ReadCloser) { _, _ = io.ReadAll(b) }
func one(_ *testing.T, b io.ReadCloser) { _, _ = b.Read(make([]byte, 10)) }

// BenchmarkRequest is what the spans of one request cost: of the request, of its stages, and of what goes upstream.
func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct {
		name string
		on   bool
		flag string
	}{{"off", false, "01"}, {"not recorded", true, "00"}, {"recorded", true, "01"}} {
		b.Run(c.name, func(b *testing.B) {
			r := &traced{}
			if c.on {
				r = open(b, func(o *tracing.Options) { o.Exporter = failing{} })
			}
			u := &upstream{status: http.StatusOK, body: http.NoBody}
			transport := r.Transport(u)
			req := testkit.Request(b, http.MethodPost, "http://engine:8000/v1/chat/completions", http.NoBody)
			req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"+c.flag)
			b.ReportAllocs()
			for b.Loop() {
				ctx, span := r.Server(b.Context(), req.Header, req.Method, "/v1/chat/completions")
				for _, stage := range []string{"read", "parse", "plan"} {
					_, s := r.Start(ctx, stage)
					s.Int(tracing.Documents, 15)
					s.End()
				}
				resp, err := transport.RoundTrip(req.WithContext(ctx))
				if err != nil {
					b.Fatal(err)
				}
				_, _ = resp.Body.Read(nil)
				_ = resp.Body.Close()
				span.Status(http.StatusOK)
				span.End()
			}
		})
	}
}
