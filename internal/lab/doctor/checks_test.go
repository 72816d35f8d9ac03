package doctor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestHostCache(t *testing.T) {
	for off, says := range map[bool]string{false: "on: ", true: "off: "} {
		f := well(t, doctor.LlamaCPP)
		f.noHostCache = off
		if c := find(t, examine(t, doctor.Config{Engine: serve(t, f)}), "host cache"); !strings.HasPrefix(c.Saw, says) {
			t.Errorf("%q, want %q", c.Saw, says)
		}
	}
}

// TestSidecarAsEngine: the address of the sidecar is given for that of the engine.
func TestSidecarAsEngine(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			_, _ = w.Write([]byte(`{"status":"ready"}`))
		case "/health":
			http.Error(w, "Index not initialized", http.StatusServiceUnavailable)
		default:
			_, _ = w.Write([]byte(`{"data":[]}`))
		}
	}))
	defer server.Close()
	if c := find(t, examine(t, doctor.Config{Engine: server.URL}), "health"); c.Result != doctor.Problem ||
		!strings.Contains(c.Do, "--serve") {
		t.Errorf("%+v", c)
	}
}

func TestUnreachable(t *testing.T) {
	r := examine(t, doctor.Config{Engine: strings.Replace(freeTCP(t), "tcp", "http", 1)})
	if list := wrong(r); !slices.Equal(list, []string{"problem: health"}) {
		t.Errorf("%v", list)
	}
}

// TestSlotFiles: the check says whether slot files work, and leaves nothing in the folder.
func TestSlotFiles(t *testing.T) {
	for kind, want := range map[doctor.Kind]doctor.Result{doctor.LlamaCPP: doctor.OK, doctor.VLLM: doctor.NotKnown} {
		f := well(t, kind)
		f.slotDir = t.TempDir()
		r := examine(t, doctor.Config{Engine: serve(t, f), SlotDir: f.slotDir})
		if c := find(t, r, "slot files"); c.Result != want {
			t.Errorf("%s: %+v", kind, c)
		}
		if list, err := os.ReadDir(f.slotDir); err != nil || len(list) > 0 {
			t.Errorf("%s: %v, %v", kind, list, err)
		}
	}
	f := well(t, doctor.LlamaCPP)
	r := examine(t, doctor.Config{Engine: serve(t, f), SlotDir: t.TempDir(), NoProbe: true})
	if c := find(t, r, "slot files"); c.Result != doctor.NotKnown {
		t.Errorf("without probes: %+v", c)
	}
}

func TestNoProbe(t *testing.T) {
	f := well(t, doctor.VLLM)
	r := examine(t, doctor.Config{Engine: serve(t, f), NoProbe: true})
	if f.chats != 0 || r.Sent.Prompts != 0 || wrong(r) != nil {
		t.Errorf("%d prompts: %v\n%s", f.chats, wrong(r), printed(r))
	}
}

// TestSent: what is said to be sent is what was sent, and it has no more tokens than that.
func TestSent(t *testing.T) {
	f := well(t, doctor.VLLM)
	r := examine(t, doctor.Config{Engine: serve(t, f), ProbeTokens: 300})
	tokens := 0
	for _, p := range f.prompts {
		tokens += len(p)
		if len(p) > 400 {
			t.Errorf("a prompt of %d tokens", len(p))
		}
	}
	if r.Sent.Prompts != f.chats || r.Sent.Tokens != tokens {
		t.Errorf("said %+v, sent %d prompts of %d tokens", r.Sent, f.chats, tokens)
	}
}

// TestTrueCache: a server with a true prefix cache, and one whose cache is too small for the prompt.
func TestTrueCache(t *testing.T) {
	server := httptest.NewServer(upstream.New(upstream.Options{}))
	defer server.Close()
	r := examine(t, doctor.Config{Engine: server.URL})
	if list := wrong(r); list != nil || find(t, r, "prefix caching").Result != doctor.OK || find(t, r, "shared prefix").Result != doctor.OK {
		t.Errorf("%v\n%s", list, printed(r))
	}
	small := httptest.NewServer(upstream.New(upstream.Options{CapacityTokens: 64}))
	defer small.Close()
	if list := wrong(examine(t, doctor.Config{Engine: small.URL})); !slices.Contains(list, "problem: prefix caching") {
		t.Errorf("a cache of 64 tokens: %v", list)
	}
}

func TestSidecar(t *testing.T) {
	engine := upstream.New(upstream.Options{})
	direct := httptest.NewServer(engine)
	defer direct.Close()
	ready := http.StatusOK
	front := func(next http.Handler) string { // a stand-in for ragpilot serve
		mux := http.NewServeMux()
		mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(ready) })
		if next != nil {
			mux.Handle("/v1/", next)
		}
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		return server.URL
	}
	result := func(url, name string) doctor.Check {
		return find(t, examine(t, doctor.Config{Engine: direct.URL, Serve: url}), name)
	}
	const through = "through the sidecar"
	if c := result(front(engine), through); c.Result != doctor.OK || !strings.Contains(c.Saw, "this engine") {
		t.Errorf("in front of the engine: %+v", c)
	}
	if c := result(front(upstream.New(upstream.Options{})), through); c.Result != doctor.Problem {
		t.Errorf("in front of another: %+v", c)
	}
	if c := result(front(nil), through); c.Result != doctor.NotKnown || !strings.Contains(c.Saw, "admin") {
		t.Errorf("the admin address: %+v", c)
	}
	ready = http.StatusServiceUnavailable
	if c := result(front(engine), "sidecar ready"); c.Result != doctor.Problem {
		t.Errorf("not ready: %+v", c)
	}
	if c := result(direct.URL, "sidecar"); c.Result != doctor.Problem {
		t.Errorf("no sidecar: %+v", c)
	}
}

// stable is a report without what differs from run to run: ports, and what depends on the machine's load.
func stable(r *doctor.Report, f *fake, url string) string {
	text := strings.ReplaceAll(printed(r), url, "http://127.0.0.1:8000")
	text = regexp.MustCompile(`\d+ batches with \d+ events`).ReplaceAllString(text, "2 batches with 2 events")
	text = regexp.MustCompile(`\d+ live`).ReplaceAllString(text, "2 live")
	text = regexp.MustCompile(`within \d+s`).ReplaceAllString(text, "within 1s")
	for i, p := range f.ports() {
		text = strings.ReplaceAll(text, p, fmt.Sprint(5557+i))
	}
	return text
}

func (f *fake) ports() []string {
	var list []string
	for i, part := range strings.Split(f.sources, "tcp://*:") {
		if i > 0 {
			list = append(list, part[:strings.IndexByte(part, '"')])
		}
	}
	return list
}

func TestTable(t *testing.T) {
	f := well(t, doctor.VLLM)
	f.noDetails = true
	url := serve(t, f)
	got := stable(examine(t, doctor.Config{Engine: url}), f, url)
	want := testkit.Golden(t, *update, filepath.Join("testdata", "table.txt"), got)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "doctor.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), want) {
		t.Error("docs/doctor.md does not show this table")
	}
}

func TestJSON(t *testing.T) {
	r := examine(t, doctor.Config{Engine: serve(t, well(t, doctor.VLLM)), NoProbe: true})
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got doctor.Report
	if err := json.Unmarshal(data, &got); err != nil || len(got.Checks) != len(r.Checks) || got.Kind != doctor.VLLM {
		t.Errorf("%s: %v", data, err)
	}
	for _, member := range []string{
		`"engine":"http://`, `"kind":"vllm"`, `"version":"0.32.0"`, `"sent":{"prompts":0`,
		`"check":"health","result":"ok","saw":`,
	} {
		if !bytes.Contains(data, []byte(member)) {
			t.Errorf("no %s in %s", member, data)
		}
	}
}

func TestBadConfig(t *testing.T) {
	for name, cfg := range map[string]doctor.Config{
		"Engine":      {Engine: "localhost:8000"},
		"Serve":       {Engine: "http://a", Serve: "b"},
		"Budget":      {Engine: "http://a", Budget: -1},
		"ProbeTokens": {Engine: "http://a", ProbeTokens: 1 << 30},
		"Replay":      {Engine: "http://a", Replay: "tcp://a:1"},
		"Wait":        {Engine: "http://a", Wait: -1},
	} {
		if _, err := doctor.Run(t.Context(), cfg); !errors.Is(err, doctor.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	const secret = "hunter2"
	if _, err := doctor.Run(t.Context(), doctor.Config{Engine: "ftp://me:" + secret + "@a"}); err == nil ||
		strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
}
