package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// The keys that no answer, no log and no upstream may ever see, but for the engine's own.
const (
	redKey    = "red-client-key-0123456789"
	blueKey   = "blue-client-key-0123456789"
	engineKey = "engine-secret-key-0123456789"
)

// route is a request in the table of docs/threat-model.md.
type route struct {
	address, method, path string
	key, page             bool // a key is needed; a page of another site is answered
}

// routesOf reads the table.
func routesOf(t *testing.T) []route {
	t.Helper()
	text, err := os.ReadFile("../../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "<!-- routes -->")
	table, _, end := strings.Cut(table, "<!-- /routes -->")
	if !ok || !end {
		t.Fatal("no table")
	}
	var routes []route
	row := regexp.MustCompile(`(?m)^\| (main|admin) \| (.*?) \| (yes|no) \| (refused|answered) \|`)
	for _, cells := range row.FindAllStringSubmatch(table, -1) {
		for _, request := range regexp.MustCompile("`([A-Z]+) (/[^`]*)`").FindAllStringSubmatch(cells[2], -1) {
			routes = append(routes, route{cells[1], request[1], request[2], cells[3] == "yes", cells[4] == "answered"})
		}
	}
	if len(routes) < 60 {
		t.Fatalf("only %d routes", len(routes))
	}
	return routes
}

// concrete is a path with segments in place of {…}.
func (r route) concrete() string {
	return regexp.MustCompile(`\{[a-z]+(\.\.\.)?\}`).ReplaceAllString(r.path, "x1")
}

// TestThreatRoutesHaveRows: a path that the code serves stands in the table of docs/threat-model.md.
func TestThreatRoutesHaveRows(t *testing.T) {
	rows := map[string]bool{}
	for _, r := range routesOf(t) {
		rows[r.method+" "+r.path], rows[r.path] = true, true
	}
	// Literals that look like routes and are none.
	none := []string{
		"/", "/v1", "/v1/", "/v1/*", "/mem0", "/{rest...}", // parts of routes, and labels
		"POST /reset",              // of Mem0, behind /mem0 only
		"GET /debug/pprof/cmdline", // always 404
	}
	literal := regexp.MustCompile(`"((?:(?:GET|HEAD|POST|PUT|PATCH|DELETE) )?/(?:[A-Za-z0-9{][^" ]*)?)"`)
	found := 0
	for _, pkg := range []string{".", "server", "proxy", "compat", "memoryapi", "dashboard"} {
		files, err := filepath.Glob("../../internal/sidecar/" + pkg + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pkg, files, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
				found++
				if pattern := strings.TrimSuffix(m[1], "{$}"); !rows[pattern] && !slices.Contains(none, m[1]) {
					t.Errorf("%s: %q has no row in docs/threat-model.md", filepath.Base(name), m[1])
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d routes were found in the code: the search finds nothing", found)
	}
}

// seenEngine is an engine that records what arrives, and answers everything with a model's answer.
type seenEngine struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request // guarded by mu
}

func newSeenEngine(t *testing.T) *seenEngine {
	e := &seenEngine{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.RequestURI != "/props" { // the server's own question when it starts, at any time; no client's path leads there
			e.mu.Lock()
			e.requests = append(e.requests, r)
			e.mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Access-Control-Allow-Origin", "*") // as vLLM does
		_, _ = io.WriteString(w, `{"id":"1","choices":[{"message":{"role":"assistant","content":"ok"}}]}`)
	}))
	t.Cleanup(e.Close)
	return e
}

// take returns what has arrived since the last call.
func (e *seenEngine) take() []*http.Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.requests
	e.requests = nil
	return out
}

// threatServer is a process that serves.
type threatServer struct {
	main, admin string
	log         func() string // what it has written so far
}

// startServe starts the program with settings in YAML, and waits until it listens.
func startServe(t *testing.T, settings string, args ...string) threatServer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	cmd := command(ctx,
		append([]string{
			"serve", "--config", write(t, "r.yaml", settings), "--listen", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
			"--memory-dir", t.TempDir(), "--memory-embedder", "lexical",
		}, args...)...)
	pipe := started(t, cmd, cmd.StderrPipe)
	var mu sync.Mutex
	var text strings.Builder
	listening, ended := make(chan []string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		re := regexp.MustCompile(`msg=listening addr=(\S+) admin_addr=(\S+) `)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			mu.Lock()
			text.WriteString(lines.Text() + "\n")
			mu.Unlock()
			if found := re.FindStringSubmatch(lines.Text()); found != nil {
				listening <- found
			}
		}
	}()
	s := threatServer{log: func() string { mu.Lock(); defer mu.Unlock(); return text.String() }}
	t.Cleanup(func() {
		defer cancel()
		http.DefaultClient.CloseIdleConnections()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		_ = cmd.Wait()
		for _, key := range []string{redKey, blueKey, engineKey} {
			if strings.Contains(s.log(), key) {
				t.Errorf("the log shows a key:\n%s", s.log())
			}
		}
	})
	select {
	case found := <-listening:
		s.main, s.admin = found[1], found[2]
	case <-ended:
		t.Fatalf("it does not listen:\n%s", s.log())
	}
	return s
}

// answered is an answer that was read to its end.
type answered struct {
	code   int
	header http.Header
	text   string
}

// ask sends a request to an address; target is its path as it stands in the request line. Headers are names and values in turn.
func ask(t *testing.T, address, method, target string, headers ...string) answered {
	t.Helper()
	req := testkit.Request(t, method, "http://"+address,
		strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"I said hello."}],"contexts":[[1,2]],"context":[1],"user_id":"u"}`))
	if req.URL.Opaque = target; strings.HasPrefix(target, "//") {
		req.URL.Opaque, req.URL.Path = "", target
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{res.StatusCode, res.Header, string(text)}
}

func (s threatServer) address(r route) string {
	if r.address == "admin" {
		return s.admin
	}
	return s.main
}

// pages are headers by which a browser says that a page of another site is asking.
var pages = map[string][]string{
	"origin":             {"Origin", "https://evil.example"},
	"another port":       {"Origin", "http://127.0.0.1:3000"},
	"no origin":          {"Origin", "null"},
	"empty origin":       {"Origin", ""},
	"two origins":        {"Origin", "http://HOST", "Origin", "https://evil.example"},
	"image or form":      {"Sec-Fetch-Site", "cross-site"},
	"another local site": {"Sec-Fetch-Site", "same-site"},
	"own and cross-site": {"Origin", "http://HOST", "Sec-Fetch-Site", "cross-site"},
}

// hosts are names that a page could give a loopback address.
var hosts = []string{
	"evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example", "localhost.",
	"127.0.0.1:1@evil.example", "0x7f000001.evil.example",
}

// ofMem0 are paths that are there behind /mem0 too.
var ofMem0 = regexp.MustCompile(`memories|^/v1/(feedback|exports|summary|webhooks|entities)/`)

// onThisServer reports whether a route is there without special settings.
func onThisServer(r route) bool {
	return r.path != "/v1/moderations" && r.path != "/v1/responses/input_tokens"
}

// TestThreatModel sends every request of the table in docs/threat-model.md in all ways that the page speaks of.
func TestThreatModel(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	e := newSeenEngine(t)
	upstream := "infer_api_url: " + e.URL + "\npprof: true\nallowed_origins: [https://chat.example]\nadmin_hosts: [prometheus.example]\n"
	open := startServe(t, upstream)
	keyed := startServe(t, upstream+"infer_api_key: "+engineKey+"\nkeys: [{tenant: red, key: "+redKey+"}, {tenant: blue, key: "+blueKey+"}]\n")
	for _, r := range routesOf(t) {
		if !onThisServer(r) || r.path == "/debug/pprof/profile" || r.path == "/debug/pprof/trace" { // these take seconds
			continue
		}
		paths := []string{r.concrete()}
		if ofMem0.MatchString(r.path) {
			paths = append(paths, "/mem0"+r.concrete())
		}
		for _, path := range paths {
			t.Run(r.address+" "+r.method+" "+path, func(t *testing.T) {
				reached(t, open, r, path)
				pagesAreRefused(t, e, open, r, path)
				keysAreAsked(t, e, keyed, r, path)
			})
		}
	}
}

// reached: the request passes where nothing speaks against it.
func reached(t *testing.T, s threatServer, r route, path string) {
	t.Helper()
	for name, headers := range map[string][]string{
		"a program":    nil,
		"localhost":    {"Host", "localhost:1"},
		"IPv6":         {"Host", "[::1]:9765"},
		"own page":     {"Origin", "http://" + s.address(r), "Sec-Fetch-Site", "same-origin"},
		"address bar":  {"Sec-Fetch-Site", "none"},
		"any kind":     {"Content-Type", "text/plain"},
		"a form's":     {"Content-Type", "application/x-www-form-urlencoded"},
		"without kind": {"Content-Type", ""},
	} {
		if got := ask(t, s.address(r), r.method, path, headers...); refusedBy(got) {
			t.Errorf("%s: %d %s", name, got.code, got.text)
		}
	}
	if r.address == "main" {
		got := ask(t, s.main, r.method, path, "Origin", "https://chat.example", "Sec-Fetch-Site", "cross-site")
		if allow := got.header.Values("Access-Control-Allow-Origin"); refusedBy(got) || !r.page &&
			!slices.Equal(allow, []string{"https://chat.example"}) {
			t.Errorf("an allowed page: %d %s, origins %q", got.code, got.text, allow)
		}
		if got := ask(t, s.main, r.method, path, "Host", "ragpilot:8765"); refusedBy(got) {
			t.Errorf("the name of a container: %d %s", got.code, got.text)
		}
		return
	}
	if got := ask(t, s.admin, r.method, path, "Host", "Prometheus.example:9765"); refusedBy(got) {
		t.Errorf("an admin host: %d %s", got.code, got.text)
	}
}

// refusedBy reports whether an answer says that the request was not let in, or that there is no such route.
func refusedBy(a answered) bool {
	return a.code == http.StatusUnauthorized || a.code == http.StatusForbidden || a.code == http.StatusMethodNotAllowed ||
		strings.Contains(a.text, "Not Found")
}

func pagesAreRefused(t *testing.T, e *seenEngine, s threatServer, r route, path string) {
	t.Helper()
	e.take()
	check := func(name string, headers []string) {
		t.Helper()
		got := ask(t, s.address(r), r.method, path, headers...)
		if r.page {
			if refusedBy(got) {
				t.Errorf("%s: %d %s", name, got.code, got.text)
			}
			return
		}
		if got.code != http.StatusForbidden || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %s, want 403", name, got.code, got.text)
		}
	}
	for name, headers := range pages {
		own := slices.Clone(headers)
		for i := range own {
			own[i] = strings.ReplaceAll(own[i], "HOST", s.address(r))
		}
		check(name, own)
	}
	for _, host := range hosts {
		check("host "+host, []string{"Host", host})
		check("rebound "+host, []string{"Host", host, "Origin", "http://" + host})
	}
	if seen := e.take(); len(seen) > 0 {
		t.Errorf("the engine was asked for %s", seen[0].URL)
	}
}

func keysAreAsked(t *testing.T, e *seenEngine, s threatServer, r route, path string) {
	t.Helper()
	if !r.key {
		return
	}
	e.take()
	for name, headers := range map[string][]string{
		"none": nil, "wrong": {"Authorization", "Bearer wrong"}, "the engine's": {"Authorization", "Bearer " + engineKey},
		"beginning": {"X-Api-Key", redKey[:10]}, "tenant's name": {"X-Api-Key", "red"},
	} {
		if got := ask(t, s.main, r.method, path, headers...); got.code != http.StatusUnauthorized {
			t.Errorf("key %s: %d %s, want 401", name, got.code, got.text)
		}
	}
	if seen := e.take(); len(seen) > 0 {
		t.Errorf("without a key the engine was asked for %s", seen[0].URL)
	}
	stored := strings.Contains(r.path, "files") || strings.Contains(r.path, "uploads") || strings.Contains(r.path, "batches") ||
		strings.Contains(r.path, "conversations") ||
		strings.Contains(r.path, "vector_stores") || r.method == http.MethodGet &&
		(strings.HasPrefix(r.path, "/v1/responses") || strings.HasPrefix(r.path, "/v1/chat/"))
	for name, headers := range map[string][]string{
		"bearer":    {"Authorization", "Bearer " + redKey},
		"x-api-key": {"X-Api-Key", redKey},
		"both":      {"Authorization", "Bearer " + redKey, "X-Api-Key", redKey},
		"two keys":  {"Authorization", "Bearer " + redKey, "X-Api-Key", blueKey},
		"in many places": {
			"X-Api-Key", redKey, "Api-Key", redKey, "Cookie", "k=" + blueKey, "X-Other", "Token " + redKey, "Authorization",
			"Basic dTpyZWQtY2xpZW50LWtleS0wMTIzNDU2Nzg5",
		},
		"odd cookies": {"X-Api-Key", redKey, "Cookie", `a=b=` + blueKey + `; c="` + redKey + `"`, "Cookie", "d='" + redKey + "'"},
		"in addresses": {
			"X-Api-Key", redKey, "X-Forwarded-Uri", "/v1/models?api_key=" + redKey, "Referer",
			"http://h/?k=" + strings.ReplaceAll(redKey, "-", "%2D"),
		},
		"inside words": {
			"X-Api-Key", redKey, "User-Agent", "app/" + redKey, "X-Auth", "key:" + redKey, "Sec-Websocket-Protocol",
			"realtime, openai-insecure-api-key." + redKey,
		},
		"as a name":       {"X-Api-Key", redKey, redKey, "1"},
		"odd spaces":      {"Authorization", "Bearer \u00a0" + redKey},
		"beside a page's": {"X-Api-Key", redKey, "X-Forwarded-For", redKey},
	} {
		got := ask(t, s.main, r.method, path+"?x="+redKey+"&limit=1", headers...)
		if stored != (got.code == http.StatusForbidden) || !stored && refusedBy(got) {
			t.Errorf("key %s: %d %s; stored object: %v", name, got.code, got.text, stored)
		}
		if strings.Contains(got.text, engineKey) || strings.Contains(got.text, redKey) {
			t.Errorf("key %s: the answer shows a key: %s", name, got.text)
		}
		for _, seen := range e.take() {
			var text strings.Builder
			_ = seen.Header.Write(&text)
			for _, key := range []string{redKey, blueKey, "dTpyZWQ"} {
				if strings.Contains(text.String()+seen.RequestURI, key) {
					t.Errorf("key %s: the engine got %s\n%s", name, seen.RequestURI, &text)
				}
			}
			if seen.Header.Get("Authorization") != "Bearer "+engineKey {
				t.Errorf("key %s: the engine got Authorization %q", name, seen.Header.Get("Authorization"))
			}
		}
	}
	if !stored {
		return
	}
	got := ask(t, s.main, r.method, path, "X-Api-Key", redKey, "Authorization", "Bearer the-clients-own")
	seen := e.take()
	if got.code != http.StatusOK || len(seen) != 1 || seen[0].Header.Get("Authorization") != "Bearer the-clients-own" {
		t.Errorf("with the client's own key: %d %s, arrived: %d", got.code, got.text, len(seen))
	}
}
