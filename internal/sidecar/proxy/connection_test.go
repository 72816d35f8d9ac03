package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// What a client agrees with us about the connection is not the engine's: Java's clients offer HTTP/2 with every request. Answers that
// are read are asked of cloud providers uncompressed.
func TestConnectionIsNotForwarded(t *testing.T) {
	e := newEngine(t)
	p := newProxy(t, e, nil)
	body := chat("s", "q")
	hop := []string{
		"Connection", "Upgrade, HTTP2-Settings", "HTTP2-Settings", "AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA", "Te", "trailers",
		"Accept-Encoding", "gzip",
	}
	for path, want := range map[string][2]string{
		chatPath: {"gzip", ""}, "/v1/completions": {"gzip", ""}, "/v1/messages": {"gzip", ""}, "/v1/embeddings": {"gzip", ""},
	} {
		for _, upgrade := range []string{"h2c", "websocket"} {
			if w := post(p, path, "", body, append(hop, "Upgrade", upgrade)...); w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			}
			if !strings.Contains(e.last(), `"messages"`) {
				t.Errorf("%s: the engine got %q", path, e.last())
			}
			h, offered := e.lastHead(), want[1]
			if upgrade == "websocket" && path == "/v1/embeddings" {
				offered = upgrade
			}
			got := [4]string{h.Get("Accept-Encoding"), h.Get("Upgrade"), h.Get("Te"), h.Get("Http2-Settings")}
			if diff := cmp.Diff([4]string{want[0], offered, "", ""}, got); diff != "" {
				t.Errorf("%s, %s: Accept-Encoding, Upgrade, TE, HTTP2-Settings: %s", path, upgrade, diff)
			}
		}
	}
}

// Cloud providers compress, and the usage must be read.
func TestCloudsDoNotCompress(t *testing.T) {
	e := newEngine(t)
	cloud := newProxy(t, e, func(o *proxy.Options) { o.Provider = anthropicAt(t, o.Upstream) })
	for path, want := range map[string]string{"/v1/messages": "identity", "/v1/embeddings": "gzip"} {
		post(cloud, path, "", chat("s", "q"), "Accept-Encoding", "gzip")
		if got := e.lastHead().Get("Accept-Encoding"); got != want {
			t.Errorf("%s: Accept-Encoding %s, want %s", path, got, want)
		}
	}
}

// Providers send JSON in chunks, too: what it says of tokens is in the headers all the same. A long one is passed on as it comes.
func TestUsageOfChunkedAnswers(t *testing.T) {
	for _, padding := range []int{0, 5 << 20} {
		e := newEngine(t)
		answer := `{"text":"` + strings.Repeat("x", padding) + `",` +
			`"usage":{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"input_tokens":36,"cache_read_input_tokens":64}}`
		e.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			for i := 0; i < len(answer); i += 1 << 20 {
				fmt.Fprint(w, answer[i:min(i+1<<20, len(answer))])
				w.(http.Flusher).Flush()
			}
		}
		w := post(newProxy(t, e, nil), "/v1/completions", "", `{"prompt":"p","rid":"R"}`)
		if w.Body.String() != answer {
			t.Fatalf("%d bytes of %d", w.Body.Len(), len(answer))
		}
		want := map[int]string{0: `{"request_id":"R","tokens_reported":105}`}[padding]
		if want == "" {
			want = `{"request_id":"R","tokens_reported":0}`
		}
		if got := w.Header().Get(proxy.ResultHeader); got != want {
			t.Errorf("%d bytes: header %s, want %s", len(answer), got, want)
		}
		cloud := newProxy(t, e, func(o *proxy.Options) { o.Provider = anthropicAt(t, o.Upstream) })
		w = post(cloud, "/v1/messages", "", chat("s", "q"))
		if got := w.Header().Get(proxy.CloudHeader); w.Body.String() != answer || padding == 0 && !strings.Contains(got, "64") ||
			padding > 0 && got != "" {
			t.Errorf("%d bytes: header %q", len(answer), got)
		}
	}
}

// The time to the first token is known when it has come, also if the rest never does.
func TestFirstTokenOfBrokenStreams(t *testing.T) {
	e, x := newEngine(t), &index{}
	e.answer = breaksOff
	front := httptest.NewServer(newProxy(t, e, func(o *proxy.Options) { o.Index = x }))
	defer front.Close()
	resp := send(t.Context(), t, front, chatPath, chat("s", "q")) //nolint:bodyclose // by t.Cleanup
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ttft != 1 {
		t.Errorf("%d times recorded, want 1", x.ttft)
	}
}

// Whatever stands in the place of an ID: the engine and the client see the same one, or none.
func TestUnusualRequestIDs(t *testing.T) {
	for member, want := range map[string]string{
		`"rid":null`:                          "new",
		`"rid":""`:                            "new",
		`"request_id":null`:                   "new",
		`"rid":null,"request_id":"R"`:         "R",
		`"rid":["a","b"]`:                     "",
		`"rid":7,"request_id":"R"`:            "",
		`"request_id":7`:                      "",
		`"rid":"` + long(512) + `"`:           long(512),
		`"rid":"` + long(513) + `"`:           "",
		`"rid":null,"request_id":["a","b"]`:   "",
		`"rid":null,"rid":"R","request_id":1`: "",
	} {
		e, x := newEngine(t), &index{}
		p := newProxy(t, e, func(o *proxy.Options) { o.Index = x })
		sent := strings.Replace(chat("s", "q"), "{", "{"+member+",", 1)
		if w := post(p, chatPath, "", sent, "X-ContextPilot-Enabled", "false"); w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
		var got struct{ RID any }
		if err := json.Unmarshal([]byte(e.last()), &got); err != nil {
			t.Fatalf("%.100s: %v in %.200s", member, err, e.last())
		}
		switch {
		case want == "":
			if len(x.tracked) > 0 || e.last() != sent {
				t.Errorf("%.100s: tracked %.100q, sent %.200s", member, x.tracked, e.last())
			}
		case len(x.tracked) != 1 || got.RID != x.tracked[0] || want != "new" && got.RID != want ||
			want == "new" && !strings.HasPrefix(x.tracked[0], "req-"):
			t.Errorf("%.100s: tracked %.100q, sent %.200s", member, x.tracked, e.last())
		}
	}
}

func long(n int) string { return strings.Repeat("x", n) }

// Names of any length are no way to fill the memory: models and IDs pass and are not kept, sessions are known by their hash.
func TestLongNames(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes 10 s")
	}
	const mib = 4
	e := newEngine(t)
	p := newProxy(t, e, func(o *proxy.Options) { o.Transport, o.Index, o.Memory = atOnce{}, &index{}, budget.New(mib<<20) })
	first := heapMiB()
	for i := range 16 {
		name := fmt.Sprint(i, long(2<<20))
		body := chat(docs("a", "b", "c"), fmt.Sprint("q", i), docs("d", "e"))
		for _, b := range []string{
			strings.Replace(body, `"model":"m"`, `"model":"`+name+`"`, 1),
			strings.Replace(body, "{", `{"rid":"`+name+`",`, 1),
			strings.ReplaceAll(body, `"t0"`, `"`+name+`"`),
			strings.ReplaceAll(body, `"name":"search"`, `"name":"`+name+`"`),
		} {
			if w := post(p, chatPath, "", b, proxy.SessionHeader, long(1000)+fmt.Sprint(i)); w.Code != http.StatusOK ||
				len(w.Header().Get(proxy.ResultHeader)) > 4<<10 {
				t.Fatal(w.Code, len(w.Header().Get(proxy.ResultHeader)))
			}
		}
	}
	if grown := heapMiB() - first; grown > 3*mib {
		t.Errorf("%d MiB are kept, want not much more than %d", grown, mib)
	}
	// The last one: under load two requests may be in memory at once, for which the oldest sessions are given up.
	if !p.Forget("", long(1000)+"15") || p.Forget("", long(1000)+"15") || p.Forget("", long(1000)+"16") {
		t.Error("a session with a long name is not known by it")
	}
}

// What a tool calls itself is kept for references to what it returned, and weighs in what is kept.
func TestLongToolNames(t *testing.T) {
	testkit.NotUnderRace(t)
	const mib = 2
	text, err := json.Marshal(listing("read", 45))
	if err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"tool","name":"%s","tool_call_id":"c",` +
			`"content":%s}]}`,
		"/v1/responses": `{"model":"m","input":[{"role":"user","content":"q"},{"type":"function_call_output","call_id":"%s",` +
			`"output":%s}]}`,
	} {
		p := newProxy(t, newEngine(t), func(o *proxy.Options) { o.Transport, o.Memory = atOnce{}, budget.New(mib<<20) })
		first := heapMiB()
		for i := range 24 {
			if w := post(p, path, "", fmt.Sprintf(body, fmt.Sprint(i, long(1<<20)), text)); w.Code != http.StatusOK {
				t.Fatal(w.Code)
			}
		}
		if grown := heapMiB() - first; grown > 3*mib {
			t.Errorf("%s: %d MiB are kept, want not much more than %d", path, grown, mib)
		}
		runtime.KeepAlive(p)
	}
}
