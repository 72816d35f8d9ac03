package main

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// serveConfig is what `ragpilot serve` makes of flags and variables (NAME=value).
func serveConfig(t *testing.T, variables []string, args ...string) (settings.Config, error) {
	t.Helper()
	lookup := func(name string) (string, bool) {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
	f := serveFlags{config: settings.Default()}
	cmd := newServe()
	cmd.ResetFlags()
	f.register(cmd.Flags())
	if err := cmd.ParseFlags(args); err != nil {
		return settings.Config{}, err
	}
	if err := flagsFromEnv(cmd.Flags(), lookup); err != nil {
		return settings.Config{}, err
	}
	return settings.Source{File: f.file, Env: lookup, Flags: func(c *settings.Config) error { return f.apply(cmd.Flags(), c) }}.Load()
}

// TestServeLayers: file, the reference's variables, ours, flags; the later ones win.
func TestServeLayers(t *testing.T) {
	file := write(t, "r.yaml", "model: file\npolicy: sorted\nlisten: 127.0.0.1:1\nshadow: true\nkeys: [{key: a}]\ncloud_provider: openai\n")
	key := write(t, "key", "from-file\n")
	events := write(t, "events.yaml", "engines: [{kind: vllm, events: auto, name: a}]\n")
	cases := []struct {
		name      string
		variables []string
		args      []string
		want      func(*settings.Config)
	}{
		{"nothing", nil, nil, func(*settings.Config) {}},
		{
			"the reference's command line", nil,
			strings.Fields("--host 127.0.0.1 --port 9 --infer-api-url http://e:1 --stateless --log-level warning --workers 4 --model m " +
				"--cloud-provider anthropic --cloud-api-key k --extended-cache --chunk-modulus 7 --max-tokens 5"), func(c *settings.Config) {
				c.Listen, c.InferAPIURL, c.Stateless, c.LogLevel, c.Workers, c.Model = "127.0.0.1:9", "http://e:1", true, "warning", 4, "m"
				c.CloudProvider, c.CloudAPIKey, c.ExtendedCache, c.ChunkModulus, c.MaxTokens = "anthropic", "k", true, 7, 5
			},
		},
		{
			"the reference's variables",
			strings.Fields("CONTEXTPILOT_INFER_API_URL=http://e:2 CONTEXTPILOT_STATELESS_MODE=1 CONTEXTPILOT_MODEL_NAME=m"), nil,
			func(c *settings.Config) {
				c.InferAPIURL, c.Stateless, c.Model = "http://e:2", true, "m"
			},
		},
		{
			"our variables win over those",
			[]string{"CONTEXTPILOT_MODEL_NAME=theirs", "RAGPILOT_MODEL=ours", "CONTEXTPILOT_CLOUD_API_KEY=theirs", "RAGPILOT_CLOUD_API_KEY=ours"},
			[]string{"--cloud-provider", "openai"},
			func(c *settings.Config) {
				c.Model, c.CloudAPIKey, c.CloudProvider = "ours", "ours", "openai"
			},
		},
		{
			"flags win over variables",
			[]string{"RAGPILOT_MODEL=variable", "RAGPILOT_SHADOW=true"},
			[]string{"--model", "flag", "--shadow=false"},
			func(c *settings.Config) { c.Model = "flag" },
		},
		{"file", nil, []string{"--config", file}, func(c *settings.Config) {
			c.Model, c.Policy, c.Listen, c.Shadow, c.CloudProvider, c.Keys = "file", "sorted", "127.0.0.1:1", true, "openai",
				[]settings.Key{{Key: "a"}}
		}},
		{
			"a provider elsewhere",
			[]string{"RAGPILOT_CLOUD_PROVIDER=openai"},
			[]string{"--cloud-base-url", "http://gateway/x"},
			func(c *settings.Config) {
				c.CloudProvider, c.CloudBaseURL = "openai", "http://gateway/x"
			},
		},
		{
			"file under the rest",
			[]string{"RAGPILOT_CONFIG=" + file, "RAGPILOT_POLICY="},
			[]string{"--port=2", "--key-file", key, "--shadow=false", "--cloud-provider="},
			func(c *settings.Config) {
				c.Model, c.Listen, c.Keys = "file", "127.0.0.1:2", []settings.Key{{Key: "a"}, {Key: "from-file"}}
			},
		},
		{
			"OpenTelemetry's variables",
			[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS=a=theirs"},
			nil,
			func(c *settings.Config) {
				c.Trace = settings.Trace{Endpoint: "http://c:4318/v1/traces", Headers: "a=theirs", Sample: 1}
			},
		},
		{
			"our variables and flags win over those",
			[]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS=a=theirs", "RAGPILOT_TRACE_HEADERS=a=ours",
				"RAGPILOT_TRACE_SAMPLE=0.5",
			},
			[]string{"--trace-endpoint", "http://d:4318"},
			func(c *settings.Config) {
				c.Trace = settings.Trace{Endpoint: "http://d:4318", Headers: "a=ours", Sample: 0.5}
			},
		},
		{
			"switched off by a flag",
			[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318"},
			[]string{"--trace-endpoint="},
			func(*settings.Config) {},
		},
		{
			"host and port over listen", nil, strings.Fields("--listen 1.2.3.4:5 --host ::1 --port 0"),
			func(c *settings.Config) { c.Listen = "[::1]:0" },
		},
		{"no admin", []string{"RAGPILOT_ADMIN_ADDR="}, nil, func(c *settings.Config) { c.AdminAddr = "" }},
		{
			"Kubernetes beside a service ragpilot",
			[]string{"RAGPILOT_PORT=tcp://10.0.0.1:8765", "RAGPILOT_SERVICE_HOST=10.0.0.1"},
			nil,
			func(*settings.Config) {},
		},
		{
			"cache events",
			[]string{"RAGPILOT_KV_REPLAY=tcp://e:2"},
			strings.Fields("--kv-events tcp://e:1 --kv-engine sglang --kv-topic kv --kv-ranks 2"), func(c *settings.Config) {
				c.Engines = []settings.Engine{{Kind: "sglang", Events: "tcp://e:1", Replay: "tcp://e:2", Topic: "kv", Ranks: 2}}
			},
		},
		{
			"cache events of the file under flags", nil,
			[]string{"--config", events, "--kv-events=ipc:///e", "--kv-listen"},
			func(c *settings.Config) {
				c.Engines = []settings.Engine{{Kind: "vllm", Events: "ipc:///e", Name: "a", Listen: true}}
			},
		},
		{"no cache events, whatever the file says", nil, []string{"--config", events, "--kv-events="}, func(*settings.Config) {}},
		{
			"the rest", nil,
			[]string{
				"--admin-addr=:1", "--log-format=json", "--hold-out=0.5", "--trust-tenant-header=X-T", "--tls-cert=c", "--tls-key=k",
				"--tls-client-ca=a", "--drain=5s", "--lame-duck=3s", "--plan-window=2ms", "--compat-incremental-order", "--compat",
			},
			func(c *settings.Config) {
				c.Timeouts.LameDuck, c.Plan.Window, c.CompatIncrementalOrder, c.Compat = 3*time.Second, 2*time.Millisecond, true, true
				c.AdminAddr, c.LogFormat, c.HoldOut, c.TrustTenantHeader, c.TLS, c.Timeouts.Drain = ":1", "json", 0.5, "X-T",
					settings.TLS{Cert: "c", Key: "k", ClientCA: "a"}, 5*time.Second
			},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := settings.Default()
			c.want(&want)
			got, err := serveConfig(t, c.variables, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestServeBadConfig(t *testing.T) {
	for name, c := range map[string]struct {
		variables, args, want []string
	}{
		"flag":             {nil, []string{"--log-level", "loud"}, []string{"log_level", `"loud"`}},
		"port":             {nil, []string{"--port", "70000"}, []string{"--port", "70000", "65535"}},
		"port in variable": {[]string{"RAGPILOT_PORT=http"}, nil, []string{`RAGPILOT_PORT="http"`, "65535"}},
		"variable":         {[]string{"RAGPILOT_HOLD_OUT=2"}, nil, []string{"hold_out", "2"}},
		"no number":        {[]string{"RAGPILOT_WORKERS=many"}, nil, []string{`RAGPILOT_WORKERS="many"`}},
		"the reference's":  {[]string{"CONTEXTPILOT_MAX_TOKENS=many"}, nil, []string{"CONTEXTPILOT_MAX_TOKENS", `"many"`}},
		"listen":           {nil, []string{"--listen", "8765"}, []string{"listen", `"8765"`}},
		"file":             {nil, []string{"--config", write(t, "r.yaml", "modell: x\n")}, []string{"r.yaml", "line 1", "modell"}},
		"missing file":     {nil, []string{"--config", filepath.Join(t.TempDir(), "missing.yaml")}, []string{"missing.yaml"}},
		"missing key":      {nil, []string{"--key-file", filepath.Join(t.TempDir(), "missing.key")}, []string{"keys[0]", "missing.key"}},
		"unknown policy":   {nil, []string{"--policy", "zebra"}, []string{"policy", `"zebra"`, "paper"}},
		"collector":        {nil, []string{"--trace-endpoint", "localhost:4318"}, []string{"trace.endpoint", `"localhost:4318"`, "http"}},
		"share of traces":  {nil, []string{"--trace-sample", "2"}, []string{"trace.sample", "2"}},
		"its headers": {
			[]string{"RAGPILOT_TRACE_HEADERS=key"},
			[]string{"--trace-endpoint", "http://h"},
			[]string{"trace.headers", "[redacted]"},
		},
		"cache events": {nil, []string{"--kv-events", "localhost:5557"}, []string{"engines[0].events", `"localhost:5557"`, "auto"}},
		"replay alone": {nil, []string{"--kv-replay", "tcp://h:1"}, []string{"engines[0].events"}},
		"unknown engine": {
			nil,
			[]string{"--kv-events", "auto", "--kv-engine", "llamacpp"},
			[]string{"engines[0].kind", `"llamacpp"`, "sglang"},
		},
		"flags for two": {
			nil,
			[]string{"--kv-events", "auto", "--config", write(t, "two.yaml", "engines: [{kind: vllm, events: auto}, {kind: vllm, events: auto}]\n")},
			[]string{"engines", "2"},
		},
		"certificate alone": {nil, []string{"--tls-cert", "c.pem"}, []string{"tls.key"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serveConfig(t, c.variables, c.args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

// TestServeProcess: the program as a service manager sees it: it says where it listens, reloads on SIGHUP, and ends
// with status 0 on SIGTERM.
func TestServeProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	file := write(t, "r.yaml", "listen: 127.0.0.1:0\nadmin_addr: 127.0.0.1:0\ncloud_provider: openai\ncloud_api_key: hush\n")
	cmd := command(ctx, "serve", "--config", file, "--workers", "2")
	pipe := started(t, cmd, cmd.StderrPipe)
	lines := bufio.NewScanner(pipe)
	var seen strings.Builder
	until := func(pattern string) []string {
		t.Helper()
		for re := regexp.MustCompile(pattern); lines.Scan(); {
			seen.WriteString(lines.Text() + "\n")
			if found := re.FindStringSubmatch(lines.Text()); found != nil {
				return found
			}
		}
		t.Fatalf("no line %q in\n%s", pattern, seen.String())
		return nil
	}
	until("workers 2 has no effect")
	found := until(`msg=listening addr=(\S+) admin_addr=(\S+) `)
	get := func(url string) (int, string) {
		t.Helper()
		code, _, text := testkit.Ask(t, http.DefaultClient, testkit.Request(t, http.MethodGet, url, http.NoBody).WithContext(ctx))
		return code, text
	}
	if code, text := get("http://" + found[1] + "/readyz"); code != http.StatusOK {
		t.Errorf("readyz: %d %s", code, text)
	}
	if code, text := get("http://" + found[2] + "/metrics"); code != http.StatusOK ||
		!strings.Contains(text, "ragpilot_http_requests_in_flight") {
		t.Errorf("metrics: %d %.200s", code, text)
	}
	for text, want := range map[string]string{
		"hold_out: 7\n": "level=ERROR .*hold_out 7",
		"listen: 127.0.0.1:0\nadmin_addr: 127.0.0.1:0\nhold_out: 0.5\n": `configuration reloaded" changed=\[hold_out\]`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		until(want)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until("msg=stopped")
	if lines.Scan() {
		t.Errorf("after the end: %s", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, seen.String())
	}
	if strings.Contains(seen.String(), "hush") {
		t.Errorf("logged:\n%s", seen.String())
	}
}

// TestServeCannotListen: an address that is taken ends the program with its name.
func TestServeCannotListen(t *testing.T) {
	_, err := run(t, "serve", "--listen", "192.0.2.1:1", "--allow-anonymous", "--admin-addr", "")
	if err == nil || !strings.Contains(err.Error(), "192.0.2.1:1") || errors.Is(err, settings.ErrBadConfig) {
		t.Errorf("got %v", err)
	}
}
