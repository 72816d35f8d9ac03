package openai_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// body answers 200 with a stream of exactly these bytes.
func body(text string) script { return answers(http.StatusOK, sse, text) }

// dies sends the events and then breaks the connection.
func dies(events ...string) script {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		send(w, events...)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
}

// diesAtOnce breaks the connection before any answer.
func diesAtOnce(w http.ResponseWriter, _ *http.Request, _ int) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// TestFaults: what goes wrong is named, what had arrived is kept, and nothing that had begun is asked twice.
func TestFaults(t *testing.T) {
	long := strings.Repeat("x", 5000)
	cases := []struct {
		name     string
		script   script
		want     error
		not      error // must not be wrapped
		says     string
		text     string
		requests int
	}{
		{
			"401 with message", answers(401, "application/json", `{"error":{"message":"bad key","type":"auth","code":"invalid_api_key"}}`),
			engines.ErrRefused, engines.ErrInterrupted, "status 401 Unauthorized: bad key", "", 1,
		},
		{
			"400, older vLLM", answers(400, "application/json", `{"object":"error","message":"too long","code":400}`),
			engines.ErrRefused, nil, "400 Bad Request: too long", "", 1,
		},
		{
			"404, FastAPI", answers(404, "application/json", `{"detail":"Not Found"}`),
			engines.ErrRefused, nil, "404 Not Found: Not Found", "", 1,
		},
		{
			"500 html", answers(500, "text/html", "<html><body><h1>Oops</h1>\n<p>It\tbroke</p></body></html>"),
			engines.ErrRefused, nil, "500 Internal Server Error: Oops It broke", "", 1,
		},
		{
			"500 with a huge body", answers(500, "text/plain", strings.Repeat("long ", 1<<20)),
			engines.ErrRefused, nil, "…", "", 1,
		},
		{"204", answers(204, "", ""), engines.ErrRefused, nil, "204 No Content", "", 1},
		{"503 for ever", answers(503, "text/plain", "loading"), engines.ErrRefused, nil, "loading (attempt 3)", "", 3},
		{
			"200 html", answers(200, "text/html; charset=utf-8", "<p>Welcome to the proxy</p>"),
			engines.ErrRefused, nil, "Welcome to the proxy", "", 1,
		},
		{
			"200 with an error object", answers(200, "application/json", `{"error":{"message":"no such model","code":404}}`),
			engines.ErrRefused, nil, "no such model", "", 1,
		},
		{
			"an error as first event", body("data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n"),
			engines.ErrRefused, engines.ErrInterrupted, "out of memory", "", 1,
		},
		{"an error event", body("event: error\ndata: it broke\n\n"), engines.ErrRefused, nil, "it broke", "", 1},
		{
			"an error after a piece", body("data: " + piece("Hal") + "\n\ndata: {\"object\":\"error\",\"message\":\"preempted\"}\n\n"),
			engines.ErrInterrupted, nil, "preempted", "Hal", 1,
		},
		{"dies before the answer", diesAtOnce, engines.ErrUnreachable, engines.ErrInterrupted, "", "", 1},
		{"dies before the first piece", dies(), engines.ErrInterrupted, nil, "", "", 1},
		{"dies mid-stream", dies(piece("Hal"), piece("f")), engines.ErrInterrupted, nil, "", "Half", 1},
		{
			"ends without a finish reason", body("data: " + piece("Hal") + "\n\n"),
			engines.ErrInterrupted, nil, "without a finish reason", "Hal", 1,
		},
		{"empty answer", body(""), engines.ErrInterrupted, nil, "without a finish reason", "", 1},
		{"an end without an answer", body("data: [DONE]\n\n"), engines.ErrInterrupted, nil, "no choice", "", 1},
		{
			"a list of models, to which a redirect led", answers(200, "application/json", `{"object":"list","data":[]}`),
			engines.ErrInterrupted, nil, "no choice", "", 1,
		},
		{
			"malformed JSON", body("data: " + piece("Hal") + "\n\ndata: {\"choices\":[}\n\n"),
			engines.ErrInterrupted, nil, "malformed chunk of 13 bytes", "Hal", 1,
		},
		{
			"text of the wrong type", body(`data: {"choices":[{"delta":{"content":7}}]}` + "\n\n"),
			engines.ErrInterrupted, nil, "malformed chunk", "", 1,
		},
		{
			"no server-sent events", body("Hello, this is not\nthe protocol.\n\n"),
			engines.ErrInterrupted, nil, "without a finish reason", "", 1,
		},
		{
			"huge line", body("data: " + piece("Hal") + "\n\ndata: " + long + "\n\n"),
			engines.ErrInterrupted, nil, "line of more than 2048 bytes", "Hal", 1,
		},
		{
			"huge event", body("data: " + piece("Hal") + "\n\n" + strings.Repeat("data: "+long[:1000]+"\n", 5) + "\n"),
			engines.ErrInterrupted, nil, "data of more than 2048 bytes", "Hal", 1,
		},
		{
			"endless answer", body(strings.Repeat("data: "+piece(long[:600])+"\n\n", 5)),
			engines.ErrInterrupted, nil, "longer than 2048 bytes", long[:1800], 1,
		},
		{
			"huge answer of a server that does not stream", answers(200, "application/json", `{"choices":[{"message":{"content":"`+long+`"}}]}`),
			engines.ErrInterrupted, nil, "more than 4096 bytes", "", 1,
		},
		{
			"truncated JSON", answers(200, "application/json", `{"choices":[`),
			engines.ErrInterrupted, nil, "malformed chunk", "", 1,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, engine := startFake(t, c.script, func(config *openai.Config) {
				config.MaxEventBytes, config.MaxAnswerBytes = 2048, 2048
			})
			defer engine.Subscribe(func(events ...contextpilot.Event) {
				t.Errorf("events %+v of a request that failed", events)
			})()
			var got strings.Builder
			response, err := engine.Generate(t.Context(), question("req-1"), collect(&got))
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v does not wrap %v", err, c.want)
			}
			if c.not != nil && errors.Is(err, c.not) {
				t.Errorf("error %v wraps %v", err, c.not)
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), f.URL) {
				t.Errorf("error %q does not say %q and %q", err, c.says, f.URL)
			}
			if len(err.Error()) > 800 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
			if got.String() != c.text || response.Text != c.text {
				t.Errorf("pieces %q, response %q, want %q", got.String(), response.Text, c.text)
			}
			if response.ID != "req-1" {
				t.Errorf("response ID %q", response.ID)
			}
			if n := len(f.requests()); n != c.requests {
				t.Errorf("asked %d times, want %d", n, c.requests)
			}
		})
	}
}

func TestStatusError(t *testing.T) {
	_, engine := startFake(t, answers(422, "application/json", `{"error":"nope"}`), nil)
	_, err := engine.Generate(t.Context(), question(""), nil)
	if status, ok := errors.AsType[*openai.StatusError](err); !ok || status.Code != 422 || status.Message != "nope" {
		t.Errorf("error %#v", err)
	}
}

// TestRetries: requests that could not be delivered are sent again, with the same body.
func TestRetries(t *testing.T) {
	for _, code := range []int{429, 502, 503, 504} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			f, engine := startFake(t, func(w http.ResponseWriter, r *http.Request, n int) {
				if n < 2 {
					answers(code, "text/plain", "busy")(w, r, n)
					return
				}
				streams(piece("ok"), stop, usage)(w, r, n)
			}, nil)
			got, err := engine.Generate(t.Context(), question("req-1"), nil)
			if err != nil || got.Text != "ok" {
				t.Fatalf("%+v, %v", got, err)
			}
			asked := f.requests()
			if len(asked) != 3 {
				t.Fatalf("%d requests", len(asked))
			}
			for i, a := range asked {
				if string(a.body["messages"]) != string(asked[0].body["messages"]) || a.header.Get("X-Request-Id") != "req-1" {
					t.Errorf("request %d differs: %+v", i, a)
				}
			}
		})
	}
}

func TestNoRetries(t *testing.T) {
	f, engine := startFake(t, answers(503, "text/plain", "busy"), func(c *openai.Config) { c.Retries = -1 })
	if _, err := engine.Generate(t.Context(), question(""), nil); !errors.Is(err, engines.ErrRefused) {
		t.Error(err)
	}
	if n := len(f.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// refused returns an address on which nothing listens.
func refused(t *testing.T) string {
	t.Helper()
	return testkit.FreeAddress(t)
}

func TestConnectionRefused(t *testing.T) {
	address := refused(t)
	engine := newEngine(t, openai.Config{BaseURL: "http://" + address, RetryWait: 1})
	_, err := engine.Generate(t.Context(), question(""), nil)
	if !errors.Is(err, engines.ErrUnreachable) || !errors.Is(err, engines.ErrNotTaken) || !strings.Contains(err.Error(), address) ||
		!strings.Contains(err.Error(), "attempt 3") {
		t.Errorf("error %v", err)
	}
}

// TestNotTaken: an error says that another engine may be asked only if no attempt can have been read.
func TestNotTaken(t *testing.T) {
	busy := answers(503, "text/plain", "queue is full")
	for name, c := range map[string]struct {
		script   script // of the second request, the first one is answered
		want     bool
		requests int
	}{
		"503": {busy, true, 4},
		"429": {answers(429, "text/plain", "slow down"), true, 4},
		"500": {answers(500, "text/plain", "oops"), false, 2},
		"502": {answers(502, "text/plain", "upstream died"), false, 4},
		"400": {answers(400, "text/plain", "too long"), false, 2},
		"the error of a stream": {
			body("data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n"), false, 2,
		},
		"breaks, on a fresh connection the second time": {diesAtOnce, false, 3},
		"breaks a pooled connection, then 503": {func(w http.ResponseWriter, r *http.Request, n int) {
			if n == 1 {
				diesAtOnce(w, r, n)
				return
			}
			busy(w, r, n)
		}, false, 5},
	} {
		t.Run(name, func(t *testing.T) {
			f, engine := startFake(t, func(w http.ResponseWriter, r *http.Request, n int) {
				if n == 0 {
					streams(piece("ok"), stop)(w, r, n)
					return
				}
				c.script(w, r, n)
			}, nil)
			if _, err := engine.Generate(t.Context(), question(""), nil); err != nil {
				t.Fatal(err)
			}
			_, err := engine.Generate(t.Context(), question(""), nil)
			if err == nil || errors.Is(err, engines.ErrNotTaken) != c.want {
				t.Errorf("error %v: is it %v? want %v", err, engines.ErrNotTaken, c.want)
			}
			if n := len(f.requests()); n != c.requests {
				t.Errorf("asked %d times, want %d", n, c.requests)
			}
		})
	}
}

// TestConnectionRefusedThenServed: an engine that comes up while the request waits gets it.
func TestConnectionRefusedThenServed(t *testing.T) {
	f, tries := &fake{}, 0
	n := testkit.NewNetwork()
	server := &http.Server{Handler: f.handler(streams(piece("ok"), stop))}
	defer server.Close()
	go func() { _ = server.Serve(n) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		tries++
		if tries < 3 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
		}
		return n.Dial(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	engine := newEngine(t, openai.Config{BaseURL: "http://fake", HTTPClient: &http.Client{Transport: transport}, RetryWait: 1})
	got, err := engine.Generate(t.Context(), question(""), nil)
	if err != nil || got.Text != "ok" || len(f.requests()) != 1 {
		t.Errorf("%+v, %v, %d requests", got, err, len(f.requests()))
	}
}

// TestStalePooledConnection: the server closes a kept connection just when the next request uses it. A request on
// a fresh connection is sent again; see "dies before the answer" for one that was fresh already.
func TestStalePooledConnection(t *testing.T) {
	f, engine := startFake(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if n == 1 {
			diesAtOnce(w, r, n)
			return
		}
		streams(piece("ok"), stop)(w, r, n)
	}, nil)
	for i := range 2 {
		if got, err := engine.Generate(t.Context(), question(""), nil); err != nil || got.Text != "ok" {
			t.Fatalf("request %d: %+v, %v", i, got, err)
		}
	}
	if n := len(f.requests()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// TestSlowPieces: bytes that come one at a time make the same answer.
func TestSlowPieces(t *testing.T) {
	text := "data: " + piece("Hal") + "\r\n\r\ndata: " + piece("lo") + "\r\n\r\ndata: " + stop + "\r\n\r\ndata: [DONE]\r\n\r\n"
	_, engine := startFake(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Type", sse)
		for _, b := range []byte(text) {
			_, _ = w.Write([]byte{b})
			w.(http.Flusher).Flush()
		}
	}, nil)
	var got strings.Builder
	response, err := engine.Generate(t.Context(), question(""), collect(&got))
	if err != nil || got.String() != "Hallo" || response.Text != "Hallo" {
		t.Errorf("%q, %+v, %v", got.String(), response, err)
	}
}

// TestCutAnywhere: however many bytes of an answer arrive, the pieces are a prefix of it, each comes once, and the
// request is not repeated.
func TestCutAnywhere(t *testing.T) {
	whole := "data: " + piece("Ha") + "\n\ndata: " + piece("l") + "\n\ndata: " + piece("lo") + "\n\ndata: " + stop + "\n\ndata: [DONE]\n\n"
	finished := strings.Index(whole, `"finish_reason":"stop"`)
	for cut := range len(whole) {
		f, engine := startFake(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", sse)
			_, _ = io.WriteString(w, whole[:cut])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, nil)
		var got strings.Builder
		response, err := engine.Generate(t.Context(), question(""), collect(&got))
		if response.Text != got.String() || !strings.HasPrefix("Hallo", response.Text) {
			t.Errorf("cut at %d: pieces %q, response %q", cut, got.String(), response.Text)
		}
		if err != nil && !errors.Is(err, engines.ErrInterrupted) || err == nil && cut < finished {
			t.Errorf("cut at %d: error %v", cut, err)
		}
		if n := len(f.requests()); n != 1 {
			t.Errorf("cut at %d: %d requests", cut, n)
		}
	}
}
