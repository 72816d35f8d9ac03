package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// reports collects what the proxy reports of its requests.
type reports struct {
	mu  sync.Mutex
	all []proxy.Report
	new chan struct{}
}

func newReports() *reports { return &reports{new: make(chan struct{}, 100)} }

func (r *reports) Answered(x proxy.Report) {
	r.mu.Lock()
	r.all = append(r.all, x)
	r.mu.Unlock()
	r.new <- struct{}{}
}

func (r *reports) wait(t *testing.T) proxy.Report {
	t.Helper()
	select {
	case <-r.new:
	case <-time.After(time.Minute):
		t.Fatal("no report")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[len(r.all)-1]
}

// send posts to a real server in front of the proxy.
func send(ctx context.Context, t *testing.T, front *httptest.Server, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, front.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := front.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// Each piece of a stream is there before the next one is made.
func TestStreamsAreForwardedAsTheyArrive(t *testing.T) {
	e, rep := newEngine(t), newReports()
	next := make(chan struct{})
	e.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Up", "1")
		for i := range 5 {
			fmt.Fprintf(w, "data: {\"n\":%d}\n\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, "data: {\"usage\":{\"prompt_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":3}}}\n\ndata: [DONE]\n\n")
	}
	front := httptest.NewServer(newProxy(t, e, func(o *proxy.Options) { o.Recorder = rep }))
	defer front.Close()
	resp := send(t.Context(), t, front, chatPath, chat("s", "q")) //nolint:bodyclose // by t.Cleanup
	if resp.Header.Get("X-Up") != "1" || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("headers %v", resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	for i := range 5 {
		for lines.Scan() {
			if lines.Text() != "" {
				break
			}
		}
		if want := fmt.Sprintf("data: {\"n\":%d}", i); lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
		next <- struct{}{}
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the rest: %q, %v", rest, err)
	}
	if r := rep.wait(t); r.Prompt != 9 || r.Cached != 3 || r.Failed || r.TTFT <= 0 || r.TTFT > r.Total {
		t.Errorf("%+v", r)
	}
}

// A client that goes away stops the engine's work.
func TestCancellationReachesTheUpstream(t *testing.T) {
	e, rep := newEngine(t), newReports()
	stopped := make(chan struct{})
	e.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(stopped)
	}
	front := httptest.NewServer(newProxy(t, e, func(o *proxy.Options) { o.Recorder = rep }))
	defer front.Close()
	ctx, cancel := context.WithCancel(t.Context())
	resp := send(ctx, t, front, chatPath, chat("s", "q")) //nolint:bodyclose // by t.Cleanup
	if _, err := resp.Body.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Fatal("the upstream goes on")
	}
	if r := rep.wait(t); !r.Failed {
		t.Errorf("%+v", r)
	}
}

// breaksOff begins a stream and ends the connection.
func breaksOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "data: 1\n\n")
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// An engine that dies in the middle of an answer: the client sees a broken answer, never a complete one.
func TestUpstreamDiesMidStream(t *testing.T) {
	e, rep := newEngine(t), newReports()
	e.answer = breaksOff
	front := httptest.NewServer(newProxy(t, e, func(o *proxy.Options) { o.Recorder = rep }))
	defer front.Close()
	resp := send(t.Context(), t, front, chatPath, chat("s", "q")) //nolint:bodyclose // by t.Cleanup
	got, err := io.ReadAll(resp.Body)
	if err == nil || string(got) != "data: 1\n\n" {
		t.Errorf("got %q, error %v; want the first piece and an error", got, err)
	}
	if r := rep.wait(t); !r.Failed {
		t.Errorf("%+v", r)
	}
}

// An upstream that cannot be reached is 502, one that thinks too long 504.
func TestUpstreamDownAndSlow(t *testing.T) {
	e := newEngine(t)
	release := make(chan struct{})
	e.answer = func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}
	slow := newProxy(t, e, func(o *proxy.Options) { o.Transport = proxy.NewTransport(time.Second, 50*time.Millisecond) })
	if w := post(slow, chatPath, "", chat("s", "q")); w.Code != http.StatusGatewayTimeout ||
		!strings.Contains(w.Body.String(), `"detail":"Backend error: `) {
		t.Errorf("slow: %d %s", w.Code, w.Body)
	}
	close(release)
	e.Close()
	down := newProxy(t, e, nil)
	for path, want := range map[string]string{
		chatPath: `{"detail":"Backend error: `, "/v1/completions": `{"detail":"Inference engine backend error: `,
		"/v1/embeddings": `{"detail":"Inference engine backend error: `,
	} {
		if w := post(down, path, "", chat("s", "q")); w.Code != http.StatusBadGateway || !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// Status, headers and bytes of any answer pass.
func TestAnswersPass(t *testing.T) {
	e := newEngine(t)
	e.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Retry-After", "3")
		w.Header().Set("X-Request-Id", r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Authorization")+r.Header.Get("X-Custom"))
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, "slow down \x00\xff")
	}
	p := newProxy(t, e, nil)
	for _, path := range []string{chatPath, "/v1/completions", "/v1/messages", "/v1/embeddings?limit=1&x=%2F"} {
		w := post(p, path, "", chat("s", "q"), "Authorization", "Bearer k", "X-Custom", "v", "X-ContextPilot-Scope", "all")
		if w.Code != http.StatusTooManyRequests || w.Body.String() != "slow down \x00\xff" || w.Header().Get("Retry-After") != "3" {
			t.Errorf("%s: %d %v %q", path, w.Code, w.Header(), w.Body)
		}
		if got, want := w.Header().Get("X-Request-Id"), "POST "+path+" Bearer kv"; got != want {
			t.Errorf("the upstream saw %q, want %q", got, want)
		}
	}
	for name := range e.heads[0] {
		if strings.HasPrefix(name, "X-Contextpilot") || strings.HasPrefix(name, "X-Forwarded") {
			t.Errorf("header %s was forwarded", name)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "/v1/files/f1", http.NoBody)
	w := httptest.NewRecorder()
	if p.ServeHTTP(w, r); w.Header().Get("X-Request-Id") != "DELETE /v1/files/f1" {
		t.Errorf("another method: %v", w.Header())
	}
}

// An engine that asks for a key or a password gets it, whatever the client has sent, on every path.
func TestEnginesCredentials(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*proxy.Options)
		want   string
	}{
		"password": {func(o *proxy.Options) { o.Upstream.User = url.UserPassword("u", "p/:") }, "Basic dTpwLzo="},
		"key":      {func(o *proxy.Options) { o.Key = "k" }, "Bearer k"},
		"neither":  {nil, "Bearer client"},
	} {
		e := newEngine(t)
		p := newProxy(t, e, func(o *proxy.Options) {
			if c.change != nil {
				c.change(o)
			}
			o.Index, o.Caches = &index{}, &follower{}
		})
		for _, path := range []string{chatPath, "/v1/completions", "/v1/embeddings"} {
			post(p, path, "", chat("s", "q"), "Authorization", "Bearer client")
			if got := e.lastHead()["Authorization"]; !slices.Equal(got, []string{c.want}) {
				t.Errorf("%s, %s: the engine got %q, want %q", name, path, got, c.want)
			}
		}
	}
}

// Where a request goes and whom it comes from is passed on as the client sent it: escapes in the path, queries that do not parse,
// and headers of proxies in front. None of these is added.
func TestRequestsPass(t *testing.T) {
	e := newEngine(t)
	e.answer = func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Target", r.RequestURI) }
	p := newProxy(t, e, func(o *proxy.Options) {
		o.Upstream.Path, o.Upstream.RawPath, o.AllowedPaths = "/a/b/", "/a%2Fb/", []string{"POST /v1/lora/*"}
	})
	paths := []string{"/v1/lora/org%2Fname?a=1;b=2&c=%zz", "/v1/lora/x%20y%7E?", "/v1/files", chatPath + "?a;b"}
	for _, path := range paths {
		w := post(p, path, "", chat("s", "q"),
			"Forwarded", "for=10.1.2.3", "X-Forwarded-For", "10.1.2.3", "X-Forwarded-Host", "h", "X-Forwarded-Proto", "https")
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		if got, want := w.Header().Get("X-Target"), "/a%2Fb"+path; got != want {
			t.Errorf("the engine was asked for %s, want %s", got, want)
		}
		for name, value := range map[string]string{
			"Forwarded": "for=10.1.2.3", "X-Forwarded-For": "10.1.2.3", "X-Forwarded-Host": "h", "X-Forwarded-Proto": "https",
		} {
			if h := e.lastHead()[name]; !slices.Equal(h, []string{value}) {
				t.Errorf("%s: header %s arrived as %q", path, name, h)
			}
		}
	}
	cloud := newProxy(t, e, func(o *proxy.Options) { o.Provider, o.TenantHeader = anthropicAt(t, o.Upstream), "x-team" })
	post(cloud, "/v1/embeddings", "", "{}", "X-Forwarded-For", "10.1.2.3", "X-Team", "blue",
		"X-Real-Ip", "10.1.2.3", "X-Client-Ip", "10.1.2.3", "True-Client-Ip", "10.1.2.3",
		"Cf-Connecting-Ip", "10.1.2.3", "X-Envoy-External-Address", "10.1.2.3", "Via", "1.1 10.1.2.3")
	for name, values := range e.lastHead() {
		if text := strings.Join(values, " "); strings.Contains(text, "10.1.2.3") || strings.Contains(text, "blue") {
			t.Errorf("a cloud provider got %s: %s", name, text)
		}
	}
}
