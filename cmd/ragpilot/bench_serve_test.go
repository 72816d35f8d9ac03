package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// simulated serves the simulated engine in process.
func simulated(t *testing.T, o upstream.Options) string {
	t.Helper()
	server := httptest.NewServer(upstream.New(o))
	t.Cleanup(server.Close)
	return server.URL
}

// few are flags for a short run with small requests.
var few = []string{"--duration", "200ms", "--warm-up", "20ms", "--documents", "20", "--k", "3", "--block-tokens", "20", "--max-tokens", "3"}

func benchServe(t *testing.T, args ...string) (measured, error) {
	t.Helper()
	out, err := run(t, append([]string{"bench", "serve", "--json"}, args...)...)
	var m measured
	if out != "" {
		if err := json.Unmarshal([]byte(out), &m); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
	}
	return m, err
}

func TestBenchServe(t *testing.T) {
	url := simulated(t, upstream.Options{})
	bodies := write(t, "bodies.jsonl",
		`{"messages":[{"role":"user","content":"a"}]}`+"\n"+`{"stream":true,"messages":[{"role":"user","content":"b"}]}`+"\n")
	for name, args := range map[string][]string{
		"rate":     append(few, "--rate", "100"),
		"poisson":  append(few, "--rate", "200", "--arrivals", "poisson", "--stream"),
		"clients":  append(few, "--clients", "2", "--place", "tool"),
		"no docs":  {"--clients", "1", "--documents", "0", "--duration", "100ms", "--warm-up", "0s"},
		"recorded": {"--clients", "1", "--bodies", bodies, "--duration", "100ms", "--warm-up", "0s"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := benchServe(t, append([]string{"--base", url}, args...)...)
			if err != nil {
				t.Fatal(err)
			}
			r := m.Report
			if r == nil || r.OK == 0 || r.OK != r.Requests || r.Latency.P50 <= 0 || len(r.Errors) > 0 || m.Comparison != nil || m.Streams != nil {
				t.Errorf("%+v", m)
			}
			if name == "rate" && r.Requests != 20 || (name == "poisson") != (r.TTFT.Count == r.OK) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestBenchServeAgainst(t *testing.T) {
	slow, fast := simulated(t, upstream.Options{}), simulated(t, upstream.Options{Stub: true})
	args := append(few, "--base", slow, "--against", fast, "--rate", "200", "--slice", "20ms", "--warm-up", "40ms")
	m, err := benchServe(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	c := m.Comparison
	if c == nil || c.Base.Requests != 20 || c.Against.Requests != 20 || len(c.Latency) != 3 || c.Latency[0].Pairs != 5 ||
		!strings.HasPrefix(c.Base.Target, slow) {
		t.Errorf("%+v", c)
	}
	out, err := run(t, append([]string{"bench", "serve"}, args...)...)
	if err != nil || !strings.Contains(out, "base less against") || !strings.Contains(out, "latency p99") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestBenchServeOpenStreams(t *testing.T) {
	url := simulated(t, upstream.Options{})
	args := []string{"--base", url, "--open-streams", "5", "--documents", "0", "--max-tokens", "40", "--pid", strconv.Itoa(os.Getpid())}
	m, err := benchServe(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	if m.Streams == nil || m.Streams.Intact != 5 || m.Streams.Tokens != 200 || (m.Memory != nil) != (runtime.GOOS == "linux") {
		t.Errorf("%+v", m)
	}
	out, err := run(t, append([]string{"bench", "serve"}, args...)...)
	want := "MB: "
	if runtime.GOOS != "linux" {
		want = "not measured"
	}
	if err != nil || !strings.Contains(out, "open together") || !strings.Contains(out, want) {
		t.Errorf("%v\n%s", err, out)
	}
	lorem := simulated(t, upstream.Options{Reply: upstream.Lorem})
	m, err = benchServe(t, "--base", lorem, "--open-streams", "2")
	if err == nil || !strings.Contains(err.Error(), "2 of 2") || m.Streams == nil || m.Streams.Intact != 0 {
		t.Errorf("%v, %+v", err, m)
	}
}

// TestBenchServeNothing: a server that answers nothing is an error, behind the table that says why.
func TestBenchServeNothing(t *testing.T) {
	out, err := run(t, append([]string{"bench", "serve", "--base", refusedURL(t), "--rate", "20"}, few...)...)
	if err == nil || !strings.Contains(err.Error(), "answered none of 4") || !strings.Contains(out, "no connection: 4") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestBenchServeBadFlags(t *testing.T) {
	url := "http://127.0.0.1:1"
	broken := write(t, "b.jsonl", "{}\n[]\n")
	tests := []struct {
		args string
		want string
	}{
		{"", `"base"`},
		{"--base localhost:9 --rate 1", "--base"},
		{"--base " + url, "--rate 0"},
		{"--base " + url + " --rate 1 --clients 1", "--clients 1"},
		{"--base " + url + " --rate -1", "--rate -1"},
		{"--base " + url + " --rate 1 --slice 1s", "--slice"},
		{"--base " + url + " --rate 1 --against " + url + " --slice 1h", "slice 1h"},
		{"--base " + url + " --rate 1 --against x", "--against"},
		{"--base " + url + " --clients 1 --arrivals poisson", "--arrivals"},
		{"--base " + url + " --rate 1 --arrivals sometimes", `"sometimes"`},
		{"--base " + url + " --rate 1 --timeout -1s", "--timeout"},
		{"--base " + url + " --rate 1 --duration 0s", "duration 0s"},
		{"--base " + url + " --rate 1 --k 2000", "--k 2000"},
		{"--base " + url + " --rate 1 --place user", "--place"},
		{"--base " + url + " --rate 1 --block-tokens 0", "--block-tokens 0"},
		{"--base " + url + " --rate 1 --documents -1", "--documents -1"},
		{"--base " + url + " --rate 1 --bodies " + broken, "line 2"},
		{"--base " + url + " --rate 1 --bodies none.jsonl", "none.jsonl"},
		{"--base " + url + " --rate 1 --bodies " + broken + " --stream", "--stream"},
		{"--base " + url + " --open-streams 1 --rate 1", "--rate"},
		{"--base " + url + " --open-streams -1", "--open-streams"},
	}
	if runtime.GOOS == "linux" {
		tests = append(tests, struct{ args, want string }{"--base " + url + " --rate 1 --pid 999999999", "--pid 999999999"})
	}
	for _, tt := range tests {
		if _, err := run(t, append([]string{"bench", "serve"}, strings.Fields(tt.args)...)...); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.args, err, tt.want)
		}
	}
}

func TestBenchUpstreamBadFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--delay soon": `"soon"`, "--delay -1s": "--delay -1s", "--reply zebra": `--reply "zebra"`, "--evict-rule never": `--evict-rule "never"`,
		"--evict-ids mine": "--evict-ids", "--tokens 99999999": "--tokens", "--evict-url http://x": "--capacity", "--listen nowhere": "--listen",
		"--token-delay -1s": "--token-delay",
	} {
		if _, err := run(t, append([]string{"bench", "upstream"}, strings.Fields(args)...)...); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// TestBenchUpstream runs the server as a process of its own, which says where it listens, posts what its small cache loses,
// and ends when it is interrupted.
func TestBenchUpstream(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no interrupt can be sent to a process there")
	}
	posted := make(chan string, 100)
	sidecar := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posted <- r.URL.Path + " " + string(body)
	}))
	defer sidecar.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := command(ctx, "bench", "upstream", "--listen", "127.0.0.1:0", "--capacity", "64", "--delay", "sim", "--evict-url", sidecar.URL)
	lines := bufio.NewScanner(started(t, cmd, cmd.StdoutPipe))
	lines.Scan()
	url, ok := strings.CutPrefix(lines.Text(), "listening on ")
	if !ok {
		t.Fatalf("it says %q", lines.Text())
	}
	for _, text := range []string{"one ", "two "} {
		body := `{"messages":[{"role":"user","content":"` + strings.Repeat(text, 40) + `"}]}`
		//nolint:noctx // the test's end ends the server
		got, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", got, err)
		}
		got.Body.Close()
	}
	if got := <-posted; !strings.HasPrefix(got, `/evict {"request_ids":["`) {
		t.Errorf("posted %s", got)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var rest []string
	for lines.Scan() {
		rest = append(rest, lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if len(rest) != 2 || !strings.HasPrefix(rest[0], "2 requests, 80 prompt tokens") ||
		!strings.HasPrefix(rest[1], "1 evictions posted in 1 calls") {
		t.Errorf("at its end it says %q", rest)
	}
}
