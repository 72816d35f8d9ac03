package main

import (
	"maps"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestThreatPathsAndMethods: what is not in the table reaches no engine, however it is written.
func TestThreatPathsAndMethods(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	e := newSeenEngine(t)
	s := startServe(t, "infer_api_url: "+e.URL+"\ninfer_api_key: "+engineKey+"\nallowed_paths: [GET /v1/lora/*, POST /v1/audio/speech]\n")
	for _, target := range []string{
		"/v1/%2e%2e/metrics", "/v1/..%2fmetrics", "/v1/%2f../metrics", "/v1/x%2f..%2f..%2fmetrics", "/v1/models/../../metrics",
		"/v1/models/%2e%2e/%2e%2e/metrics", "/v1/.%2e/metrics",
		"/v1/%252e%252e/metrics", "/v1/%25252e%25252e/metrics", "/v1/models/..;/metrics", "/v1/models/..%3bx/metrics", `/v1/models/..\..\metrics`,
		"/v1/models/..%5c..%5cmetrics", "/v1/models/%00", "/v1/models/a%0d%0aX-A:b",
		"/v1/./models", "/v1/models/.", "/..", "/v1/..", "/v1/chat/completions/..", "/v1/lora/..%2f..%2fmetrics", "/%2e%2e/v1/models",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			if got := ask(t, s.main, method, target); got.code != http.StatusBadRequest {
				t.Errorf("%s %s: %d %s, want 400", method, target, got.code, got.text)
			}
		}
	}
	for _, c := range []struct {
		method, target string
		want           int
	}{
		{"TRACE", "/v1/models", 405},
		{"TRACE", "/v1/chat/completions", 405},
		{"TRACK", "/stats", 405},
		{"CONNECT", "/v1/models", 405},
		{"OPTIONS", "/v1/chat/completions", 405},
		{"DELETE", "/v1/models", 405},
		{"PUT", "/v1/chat/completions", 405},
		{"PATCH", "/v1/embeddings", 405},
		{"BREW", "/v1/completions", 405},
		{"POST", "/v1/models", 405},
		{"GET", "/v1/embeddings", 405},
		{"GET", "/v1/", 404},
		{"GET", "/v1", 307},
		{"GET", "/metrics", 404},
		{"POST", "/v1/fine_tuning/jobs", 404},
		{"POST", "/v1/load_lora_adapter", 404},
		{"GET", "/v1/organization/users", 404},
		{"POST", "/v1/images/generations", 404},
		{"GET", "/v1/audio/speech", 405},
		{"GET", "/v1/files", 403},
		{"POST", "/v1/files", 403},
		{"DELETE", "/v1/files/f1", 403},
		{"GET", "/v1/batches/b1", 403},
		{"GET", "/v1/responses/r1", 403},
		{"POST", "/v1/responses/r1/cancel", 403},
		{"GET", "/v1/chat/completions", 403},
		{"GET", "/v1/messages/batches/b1/results", 403},
		{"GET", "/debug/pprof/", 404},
		{"POST", "/forget", 404},
	} {
		if got := ask(t, s.main, c.method, c.target); got.code != c.want {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.target, got.code, got.text, c.want)
		}
	}
	for _, seen := range e.take() {
		t.Errorf("the engine was asked: %s %s", seen.Method, seen.RequestURI)
	}
	for target, want := range map[string]string{
		"GET /v1//models": "/v1/models", "GET //v1/models/": "/v1/models", "GET /v1/%6dodels": "/v1/models",
		"GET /v1/models/org%2Fname":   "/v1/models/org%2Fname",
		"POST /v1/chat//completions/": "/v1/chat/completions", "GET /v1/lora/a/b": "/v1/lora/a/b", "POST /v1/audio/speech": "/v1/audio/speech",
		"HEAD /v1/models": "/v1/models",
	} {
		method, path, _ := strings.Cut(target, " ")
		got := ask(t, s.main, method, path)
		seen := e.take()
		if got.code != http.StatusOK || len(seen) != 1 || seen[0].RequestURI != want {
			t.Errorf("%s: %d %s; arrived %d, want %s", target, got.code, got.text, len(seen), want)
		}
	}
}

// TestThreatTenants: no tenant finds or erases what another has left.
func TestThreatTenants(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	s := startServe(t, "infer_api_url: "+newSeenEngine(t).URL+"\nkeys: [{tenant: red, key: "+redKey+"}, {tenant: blue, key: "+blueKey+"}]\n")
	as := func(key, method, path string) answered { return ask(t, s.main, method, path, "X-Api-Key", key) }
	as(redKey, http.MethodPost, "/memories")
	as(redKey, http.MethodPost, "/reorder")
	mine, index := as(redKey, http.MethodGet, "/memories?user_id=u"), as(redKey, http.MethodGet, "/requests")
	if !strings.Contains(mine.text, "hello") || !strings.Contains(index.text, "req-") {
		t.Fatalf("nothing was kept: %s %s", mine.text, index.text)
	}
	for _, path := range []string{"/memories?user_id=u", "/requests", "/stats", "/v1/memories/?user_id=u", "/v1/entities/"} {
		if got := as(blueKey, http.MethodGet, path); strings.Contains(got.text, "hello") || strings.Contains(got.text, "req-") {
			t.Errorf("%s shows another tenant's: %s", path, got.text)
		}
	}
	id := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(mine.text)
	if id == nil {
		t.Fatalf("no ID in %s", mine.text)
	}
	for _, request := range []string{
		"GET /memories/" + id[1], "DELETE /memories/" + id[1], "DELETE /memories?user_id=u", "POST /reset",
		"POST /mem0/reset", "POST /evict", "DELETE /v1/memories/" + id[1] + "/",
	} {
		method, path, _ := strings.Cut(request, " ")
		as(blueKey, method, path)
	}
	if got := as(redKey, http.MethodGet, "/memories?user_id=u"); got.text != mine.text {
		t.Errorf("another tenant changed the memories to %s", got.text)
	}
	if got := as(redKey, http.MethodGet, "/requests"); got.text != index.text {
		t.Errorf("another tenant changed the index to %s", got.text)
	}
}

// TestThreatAddresses: an address that other machines can reach is opened with keys, or on purpose, and never with the server's
// own key behind it.
func TestThreatAddresses(t *testing.T) {
	key := write(t, "key", redKey)
	for name, c := range map[string]struct {
		args []string
		want string // part of the error; "": it may start
	}{
		"default":                   {nil, ""},
		"localhost":                 {[]string{"--host", "localhost"}, ""},
		"IPv6 loopback":             {[]string{"--host", "::1"}, ""},
		"all":                       {[]string{"--host", "0.0.0.0"}, "allow_anonymous"},
		"all of IPv6":               {[]string{"--host", "::"}, "allow_anonymous"},
		"all, written short":        {[]string{"--listen", ":8765"}, "allow_anonymous"},
		"a name":                    {[]string{"--host", "gateway.example"}, "allow_anonymous"},
		"all, with a key":           {[]string{"--host", "0.0.0.0", "--key-file", key}, ""},
		"all, with certificates":    {[]string{"--host", "0.0.0.0", "--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "a"}, ""},
		"all, with our certificate": {[]string{"--host", "0.0.0.0", "--tls-cert", "c", "--tls-key", "k"}, "allow_anonymous"},
		"all, on purpose":           {[]string{"--host", "0.0.0.0", "--allow-anonymous"}, ""},
		"provider's key": {[]string{
			"--host", "0.0.0.0", "--allow-anonymous", "--cloud-provider", "openai", "--cloud-api-key",
			engineKey,
		}, "cloud_api_key"},
		"provider's key, and ours": {[]string{
			"--host", "0.0.0.0", "--cloud-provider", "openai", "--cloud-api-key", engineKey, "--key-file",
			key,
		}, ""},
		"provider, clients' keys": {[]string{"--host", "0.0.0.0", "--allow-anonymous", "--cloud-provider", "openai"}, ""},
		"engine's password": {
			[]string{"--host", "0.0.0.0", "--allow-anonymous", "--infer-api-url", "http://u:" + engineKey + "@e"},
			"infer_api_url",
		},
		"provider's key on loopback": {[]string{"--cloud-provider", "openai", "--cloud-api-key", engineKey}, ""},
	} {
		_, err := serveConfig(t, nil, c.args...)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), engineKey)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if out, err := run(t, "serve", "--host", "0.0.0.0", "--port", "0"); err == nil || !strings.Contains(err.Error(), "allow_anonymous") {
		t.Errorf("the program: %s %v", out, err)
	}
	if c, err := serveConfig(t, nil); err != nil || c.Listen != "127.0.0.1:8765" || c.AdminAddr != "127.0.0.1:9765" || c.Pprof {
		t.Errorf("the default: %v %v", c, err)
	}
}

// TestThreatSecretsInProcess: no admin path shows a key, also one that was given on the command line.
func TestThreatSecretsInProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	s := startServe(t, "pprof: true\nkeys: [{tenant: red, key: "+redKey+"}]\n", "--cloud-provider", "openai", "--cloud-api-key", engineKey)
	seen := map[string]string{}
	for _, path := range []string{
		"/metrics", "/figures", "/ui/", "/ui/data.json", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/symbol",
		"/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs",
		"/debug/pprof/trace?seconds=0.1", "/debug/vars", "/config", "/healthz", "/readyz",
	} {
		seen[path] = ask(t, s.admin, http.MethodGet, path).text
		seen["main"+path] = ask(t, s.main, http.MethodGet, path, "X-Api-Key", redKey).text
	}
	for path, text := range maps.All(seen) {
		if strings.Contains(text, engineKey) || strings.Contains(text, redKey) {
			t.Errorf("%s shows a key", path)
		}
	}
}

// postTo sends a body with a key and returns the status.
func postTo(t *testing.T, s threatServer, key, path, body string) int {
	t.Helper()
	req := testkit.Request(t, http.MethodPost, "http://"+s.main+path, strings.NewReader(body))
	req.Header.Set("X-Api-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// TestThreatStoredAnswers: a tenant cannot go on from an answer that is stored under the server's key.
func TestThreatStoredAnswers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	e := newSeenEngine(t)
	keys := "infer_api_url: " + e.URL + "\nkeys: [{tenant: red, key: " + redKey + "}, {key: " + blueKey + "}]\n"
	post := func(s threatServer, key, body string) int { return postTo(t, s, key, "/v1/responses", body) }
	shared := startServe(t, keys+"infer_api_key: "+engineKey+"\n")
	lifted := startServe(t, keys+"infer_api_key: "+engineKey+"\nstored_objects: true\n")
	own := startServe(t, keys)
	for _, body := range []string{
		`{"model":"m","input":"x","previous_response_id":"resp_1"}`,
		`{"model":"m","input":"x","conversation":{"id":"c"}}`, `{"input":"x","previous\u005fresponse_id":"resp_1","previous_response_id":null}`,
		`{"input":"x","previous_response_id":null,"previous_response_id":"resp_1"}`,
	} {
		got := []int{post(shared, redKey, body), post(shared, blueKey, body), post(lifted, redKey, body), post(own, redKey, body)}
		if want := []int{403, 200, 200, 200}; !slices.Equal(got, want) {
			t.Errorf("%s: tenant, no tenant, lifted, no key of ours: %v, want %v", body, got, want)
		}
	}
	for path, bodies := range map[string][]string{
		"/v1/responses": {
			`{"input":[{"type":"item_reference","id":"msg_1"}]}`, `{"input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}`,
			`{"tools":[{"type":"file_search","vector_store_ids":["vs"]}],"input":"x"}`,
			`{"input":"x","tools":[{"type":"code_interpreter","container":"c"}]}`,
			`{"input":"x","tools":[{"environment":{"type":"container_reference","container_id":"c"}}]}`, `{"input":[{"id":"msg_1"}]}`,
			`{"input":[{"id":"msg_1","type":null}]}`,
			`{"input":"x","prompt":{"id":"p"}}`, `{"type":"tool_use","input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}`,
		},
		"/v1/chat/completions": {
			`{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]}`,
			`{"messages":[{"role":"assistant","audio":{"id":"a"}}]}`,
		},
		"/v1/messages": {
			`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]}`,
			`{"container":"c","messages":[]}`,
		},
		"/v1/messages/count_tokens": {`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file",` +
			`"fi\u006ce_id":"f"}}]}]}`},
	} {
		for _, body := range bodies {
			if got := []int{postTo(t, shared, redKey, path, body), postTo(t, own, redKey, path, body)}; !slices.Equal(got, []int{403, 200}) {
				t.Errorf("%s %s: tenant, no key of ours: %v", path, body, got)
			}
		}
	}
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"what is a file_id or a vector_store_id?"}],"tools":[{"type":"function","function":{"name":"f",` +
			`"parameters":{"properties":{"file_id":{"type":"string"}},"required":["file_id"]}}}]}`,
		`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"file_id":"the application's"}}]}],` +
			`"previous_response_id":null,"metadata":{"file_id":"x"}}`,
		`{"messages":[{"role":"assistant","content":[{"type":"server_tool_use","id":"1","name":"f","input":{"file_id":"x"}}]}],` +
			`"chat_template_kwargs":{"file_id":"x"},"response_format":{"json_schema":{"schema":{"default":{"file_id":"x"}}}}}`,
	} {
		if got := postTo(t, shared, redKey, "/v1/messages", body); got != 200 {
			t.Errorf("%s: %d", body, got)
		}
	}
}
