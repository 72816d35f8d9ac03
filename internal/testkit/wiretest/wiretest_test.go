package wiretest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit/wiretest"
)

// recorder is a test that notes its errors.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// play runs an example of one or more steps, in the file's format, against a server and returns what was reported.
func play(t *testing.T, example string, rules []wiretest.Rule, h func(engine string) http.HandlerFunc) []string {
	t.Helper()
	r := &recorder{TB: t}
	runner := &wiretest.Runner{Rules: rules, Start: func(t testing.TB, _ wiretest.Example, engine string) string {
		return wiretest.Serve(t, h(engine))
	}}
	wiretest.EachLine(t, []byte(strings.ReplaceAll(example, "\n", " ")), func(ex wiretest.Example) { runner.Run(r, ex) })
	runner.Unused(r)
	return r.errors
}

// says answers each request with the next of these bodies.
func says(bodies ...string) func(string) http.HandlerFunc {
	return func(string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, bodies[0])
			bodies = bodies[1:]
		}
	}
}

// Every kind of difference is found, and nothing else.
func TestDifferences(t *testing.T) {
	step := func(response string) string {
		return `{"method":"GET","path":"/x","status":200,"response":` + response + `}`
	}
	ours := func(at string, want any) []wiretest.Rule {
		return []wiretest.Rule{{At: at, Want: want, Why: "so it is"}}
	}
	for _, c := range []struct {
		name, recorded, answer string
		rules                  []wiretest.Rule
		want                   string // in the one report, "" for none
	}{
		{"equal", `{"a":[1,"x",null,{"b":true}]}`, `{"a":[1.0,"x",null,{"b":true}]}`, nil, ""},
		{"value", `{"a":1}`, `{"a":2}`, nil, "body/a: got 2, want 1"},
		{"type", `{"a":1}`, `{"a":"1"}`, nil, `body/a: got "1", want 1`},
		{"null", `{"a":null}`, `{"a":0}`, nil, "body/a: got 0, want null"},
		{"missing", `{"a":1}`, `{}`, nil, "body/a: missing, want 1"},
		{"too much", `{}`, `{"a":1}`, nil, "body/a: is not in the recording: 1"},
		{"length", `[1]`, `[1,2]`, nil, "body: 2 items, want 1"},
		{"order", `[1,2]`, `[2,1]`, []wiretest.Rule{{At: "body/1", Kind: wiretest.Free}}, "body/0: got 2, want 1"},
		{"no JSON", `{"__text__":"hi"}`, `hi`, nil, ""},
		{"status", `{}`, `{}`, ours("status", 201), "status: is listed as different"},
		{"number", `["<num>"]`, `[7]`, nil, ""},
		{"no number", `["<num>"]`, `["7"]`, nil, "body/0: got \"7\", want a number"},
		{"equal IDs", `["<id1>","<id1>","c-<id1>-0"]`, `["a","a","c-a-0"]`, nil, ""},
		{"unequal IDs", `["<id1>","<id1>"]`, `["a","b"]`, nil, `body/1: got "b", want "a"`},
		{"one ID for two", `["<id1>","<id2>"]`, `["a","a"]`, nil, "which is <id1> already"},
		{"ID as a name", `{"a":{"<id1>":1,"<id2>":2},"b":["<id2>","<id1>"]}`, `{"a":{"x":1,"y":2},"b":["y","x"]}`, nil, ""},
		{"ID as another name", `{"a":{"<id1>":1},"b":"<id1>"}`, `{"a":{"x":1},"b":"y"}`, nil, "body/a: no member y"},
		{"ID and text", `"see <id1>"`, `"look a"`, nil, `got "look a", want "see <id1>"`},
		{"any order", `["<id2>",3,"<id1>"]`, `["a",3,"b"]`, []wiretest.Rule{{At: "body", Kind: wiretest.AnyOrder}}, ""},
		{"not in any order", `[1,2]`, `[2,2]`, []wiretest.Rule{{At: "body", Kind: wiretest.AnyOrder}}, "want in any order [1,2]"},
		{"free", `{"a":"x"}`, `{"a":"y"}`, []wiretest.Rule{{At: "*/a", Kind: wiretest.Free}}, ""},
		{"free but of another type", `{"a":"x"}`, `{"a":1}`, []wiretest.Rule{{At: "body/a", Kind: wiretest.Free}}, "want any string"},
		{"ours", `{"a":[1]}`, `{"a":["i",2]}`, ours("body/a", []any{"<idX>", 2}), ""},
		{"not even ours", `{"a":1}`, `{"a":3}`, ours("body/a", 2), "body/a: got 3, want 2"},
		{"ours, as recorded", `{"a":1}`, `{"a":1}`, ours("body/a", 1), "is listed as different (so it is) but is as recorded"},
		{"ours has more", `{}`, `{"a":1}`, ours("body/a", 1), ""},
		{"ours has less", `{"a":1}`, `{}`, ours("body/a", wiretest.Absent), ""},
		{"ours should have less", `{"a":1}`, `{"a":2}`, ours("body/a", wiretest.Absent), "body/a: got 2"},
		{"not needed", `{}`, `{}`, ours("body/a", 1), "rule 0 is not needed"},
		{"another endpoint", `{"a":1}`, `{"a":2}`, []wiretest.Rule{
			{Endpoint: "GET /x", Example: "no*", At: "body/a", Kind: wiretest.Free},
			{Endpoint: "GET /x", Example: "e*", At: "body/a", Kind: wiretest.Free},
		}, "rule 0 is not needed"},
		{"checked", `{"a":1}`, `{"a":2}`, []wiretest.Rule{{At: "body/a", Check: func(x wiretest.Exchange, got any) error {
			return fmt.Errorf("%v is not %v", got, x.Recorded.(map[string]any)["a"])
		}}}, "2 is not 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := play(t, `{"name":"e","steps":[`+step(c.recorded)+`]}`, c.rules, says(c.answer))
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("reported %q, want %q", got, c.want)
			}
		})
	}
}

// What an earlier answer said goes into later requests.
func TestIDsInRequests(t *testing.T) {
	var seen []string
	got := play(t, `{"name":"e","mode":"live","fresh_process":true,"steps":[
		{"method":"GET","path":"/a","status":200,"response":{"id":"<id1>"}},
		{"method":"POST","path":"/b/<id1>","headers":{"X-Id":"<id1>"},"body":{"ids":["c-<id1>"],"<id1>":1},"status":200,"response":{}},
		{"method":"POST","path":"/c","raw_body":"{<id1>","status":200,"response":{}}]}`, nil, func(string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			seen = append(seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Id")+" "+string(body))
			says(map[bool]string{true: `{"id":"q7"}`, false: `{}`}[r.URL.Path == "/a"])("")(w, r)
		}
	})
	want := []string{"GET /a  ", `POST /b/q7 q7 {"ids":["c-q7"],"q7":1}`, "POST /c  {q7"}
	if len(got) > 0 || strings.Join(seen, "\n") != strings.Join(want, "\n") {
		t.Errorf("reported %q\nsent %q\nwant %q", got, seen, want)
	}
}

// forward is a proxy that passes on what it should.
func forward(change func(*http.Request), also func(http.Header)) func(string) http.HandlerFunc {
	return func(engine string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			req, err := http.NewRequestWithContext(r.Context(), r.Method, engine+r.URL.RequestURI(), bytes.NewReader(body))
			if err != nil {
				panic(err)
			}
			req.Header = r.Header.Clone()
			change(req)
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadGateway)
				_ = json.NewEncoder(w).Encode(map[string]any{"detail": "down"})
				return
			}
			defer res.Body.Close()
			for _, name := range []string{"Content-Type", "X-Up"} {
				w.Header().Set(name, res.Header.Get(name))
			}
			also(w.Header())
			w.WriteHeader(res.StatusCode)
			_, _ = io.Copy(w, res.Body)
		}
	}
}

func TestUpstream(t *testing.T) {
	const example = `{"name":"e","mode":"live","fresh_process":true,"steps":[{
		"method":"POST","path":"/v1/chat?x=1","headers":{"Authorization":"k","X-Mode":"m"},"body":{"a":1},
		"upstream_reply":{"status":429,"headers":{"content-type":"application/json","x-up":"1"},"json":{"err":"slow"}},
		"status":429,"response":{"err":"slow"},"response_headers":{"x-up":1},
		"upstream_received":{"method":"POST","path":"/v1/chat?x=1","headers":{"authorization":"k"},"json":{"a":1}}}]}`
	strip := func(r *http.Request) { r.Header.Del("X-Mode") }
	quiet := func(http.Header) {}
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		also   func(http.Header)
		want   string
	}{
		{"as recorded", strip, quiet, ""},
		{"a header too much", func(*http.Request) {}, quiet, "upstream/headers/x-mode: is not in the recording"},
		{"a header too few", func(r *http.Request) { strip(r); r.Header.Del("Authorization") }, quiet, "upstream/headers/authorization: missing"},
		{"another body", func(r *http.Request) {
			strip(r)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
		}, quiet, "upstream/json/a: missing"},
		{"another path", func(r *http.Request) { strip(r); r.URL.RawQuery = "" }, quiet, "upstream/path"},
		{"an answer header lost", strip, func(h http.Header) { h.Del("X-Up") }, "header/x-up: missing"},
		{
			"a result too much", strip, func(h http.Header) { h.Set("X-ContextPilot-Result", `{"n":1}`) },
			`header/x-contextpilot-result: is not in the recording: {"n":1}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := play(t, example, nil, forward(c.change, c.also))
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("reported %q, want %q", got, c.want)
			}
		})
	}
	got := play(t, strings.ReplaceAll(example, "429", "200"), nil, says(`{"err":"slow"}`))
	if len(got) != 2 || !strings.Contains(got[1], "upstream: got null") {
		t.Errorf("nothing was forwarded: %q", got)
	}
	if got := play(t, `{"name":"e","steps":[{"method":"GET","path":"/x","status":404,"response":{}}]}`, nil, says(`{}`)); len(got) != 1 ||
		!strings.Contains(got[0], "status: got 200, want 404") {
		t.Errorf("another status: %q", got)
	}
}

func TestStreamTextAndDown(t *testing.T) {
	same := forward(func(*http.Request) {}, func(http.Header) {})
	got := play(t, `{"name":"e","mode":"live","fresh_process":true,"steps":[{"method":"GET","path":"/v1/s",
		"upstream_reply":{"status":200,"headers":{"content-type":"text/event-stream"},"chunks":["data: 1\n\n","data: 2\n\n"]},
		"status":200,"response":{"__text__":"data: 1\n\ndata: 2\n\n"},"response_headers":{"content-type":"text/event-stream"},
		"upstream_received":{"method":"GET","path":"/v1/s","headers":{},"json":null}},
		{"method":"GET","path":"/v1/t","upstream_reply":{"status":500,"headers":{"content-type":"text/plain"},"body":"boom"},
		"status":500,"response":{"__text__":"boom"},"upstream_received":{"method":"GET","path":"/v1/t","headers":{},"json":null}}]}`, nil, same)
	if len(got) > 0 {
		t.Errorf("reported %q", got)
	}
	got = play(t, `{"name":"e","mode":"live","fresh_process":true,"note":"the upstream port refuses connections","steps":[
		{"method":"GET","path":"/v1/s","status":502,"response":{"detail":"down"}}]}`, nil, same)
	if len(got) > 0 {
		t.Errorf("engine down: %q", got)
	}
}

// An example that was recorded after a /reset gets a server that had an index.
func TestPrimed(t *testing.T) {
	var paths []string
	count := func(string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			paths = append(paths, r.URL.Path)
			says(`{}`)("")(w, r)
		}
	}
	for _, e := range []string{`"mode":"live"`, `"mode":"live","fresh_process":true`, `"mode":"stateless"`} {
		play(t, `{"name":"e",`+e+`,"steps":[{"method":"GET","path":"/a","status":200,"response":{}}]}`, nil, count)
	}
	if got, want := strings.Join(paths, " "), "/reorder /reset /a /a /a"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}
