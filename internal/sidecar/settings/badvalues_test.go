package settings_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestBadValues: an error says which field is wrong and what stands there.
func TestBadValues(t *testing.T) {
	cases := []struct {
		name   string
		change func(*settings.Config)
		want   []string
	}{
		{"listen", func(c *settings.Config) { c.Listen = "8765" }, []string{`listen "8765"`, "host:port"}},
		{"listen empty", func(c *settings.Config) { c.Listen = "" }, []string{`listen ""`}},
		{"hold", func(c *settings.Config) { c.Hold.Until = "later" }, []string{`hold.until "later"`, "first-token"}},
		{"held for ever", func(c *settings.Config) { c.Hold.Longest = 0 }, []string{"hold.longest 0s", "more than 0s"}},
		{"held for nothing", func(c *settings.Config) { c.Hold.Tokens = 0 }, []string{"hold.tokens 0", "at least 1"}},
		{"pattern", func(c *settings.Config) { c.Stabilise.Patterns = []string{"a", "("} }, []string{`stabilise.patterns[1] "("`, "missing closing"}},
		{"wide pattern", func(c *settings.Config) { c.Stabilise.Patterns = []string{".*"} }, []string{`stabilise.patterns[0] ".*"`, "every line"}},
		{"marker", func(c *settings.Config) { c.Stabilise.Markers = []string{"facts"} }, []string{`stabilise.markers[0] "facts"`, "Name:"}},
		{"place", func(c *settings.Config) { c.Stabilise.Place = "behind" }, []string{`stabilise.place "behind"`, "auto, system, user"}},
		{"port", func(c *settings.Config) { c.Listen = "0.0.0.0:70000" }, []string{`listen "0.0.0.0:70000"`, "65535"}},
		{"port by name", func(c *settings.Config) { c.Listen = "localhost:http" }, []string{`listen "localhost:http"`}},
		{"admin", func(c *settings.Config) { c.AdminAddr = "here" }, []string{`admin_addr "here"`}},
		{"scheme", func(c *settings.Config) { c.InferAPIURL = "localhost:30000" }, []string{`infer_api_url "localhost:30000"`, "http or https"}},
		{"no host", func(c *settings.Config) { c.InferAPIURL = "http:///v1" }, []string{"infer_api_url", "host"}},
		{"query", func(c *settings.Config) { c.InferAPIURL = "http://h/?a=b" }, []string{"infer_api_url", "query"}},
		{"no URL", func(c *settings.Config) { c.InferAPIURL = "http://h/%zz" }, []string{`infer_api_url "http://h/%zz"`}},
		{"engine's port", func(c *settings.Config) { c.InferAPIURL = "http://h:65536" }, []string{`infer_api_url "http://h:65536"`, "65535"}},
		{
			"engine's path",
			func(c *settings.Config) { c.InferAPIURL = "http://h:1/v1/" },
			[]string{`infer_api_url "http://h:1/v1/"`, "must not end in /v1"},
		},
		{
			"provider's path",
			func(c *settings.Config) { c.CloudProvider, c.CloudBaseURL = "openai", "http://h/v1" },
			[]string{`cloud_base_url "http://h/v1"`, "must not end in /v1"},
		},
		{"open to all", func(c *settings.Config) { c.Listen = "0.0.0.0:1" }, []string{`listen "0.0.0.0:1"`, "keys", "allow_anonymous"}},
		{"open on all addresses", func(c *settings.Config) { c.Listen = ":1" }, []string{`listen ":1"`}},
		{"open with the provider's key", func(c *settings.Config) {
			c.Listen, c.AllowAnonymous, c.CloudProvider, c.CloudAPIKey = "[::]:1", true, "openai", "hush"
		}, []string{`listen "[::]:1"`, "cloud_api_key"}},
		{
			"open with the engine's key",
			func(c *settings.Config) { c.Listen, c.AllowAnonymous, c.InferAPIKey = "10.0.0.1:1", true, "hush" },
			[]string{"listen", "infer_api_key"},
		},
		{
			"open with the engine's password",
			func(c *settings.Config) { c.Listen, c.AllowAnonymous, c.InferAPIURL = ":1", true, "http://u:hush@h" },
			[]string{"listen", "infer_api_url"},
		},
		{
			"admin host with port",
			func(c *settings.Config) { c.AdminHosts = []string{"prometheus:9765"} },
			[]string{`admin_hosts[0] "prometheus:9765"`},
		},
		{"any host", func(c *settings.Config) { c.AllowedHosts = []string{"a.b", "*"} }, []string{`allowed_hosts[1] "*"`}},
		{
			"origin without scheme",
			func(c *settings.Config) { c.AllowedOrigins = []string{"chat.example.com"} },
			[]string{`allowed_origins[0] "chat.example.com"`, "scheme://host"},
		},
		{
			"origin with path",
			func(c *settings.Config) { c.AllowedOrigins = []string{"*", "https://a/b"} },
			[]string{`allowed_origins[1] "https://a/b"`},
		},
		{"path without method", func(c *settings.Config) { c.AllowedPaths = []string{"/v1/x"} }, []string{`allowed_paths[0] "/v1/x"`, "method"}},
		{
			"path elsewhere",
			func(c *settings.Config) { c.AllowedPaths = []string{"GET /metrics"} },
			[]string{`allowed_paths[0] "GET /metrics"`, "/v1/"},
		},
		{"path with dots", func(c *settings.Config) { c.AllowedPaths = []string{"GET /v1/../metrics"} }, []string{"allowed_paths[0]"}},
		{"star inside", func(c *settings.Config) { c.AllowedPaths = []string{"GET /v1/*/x"} }, []string{"allowed_paths[0]", "last segment"}},
		{"connections", func(c *settings.Config) { c.Limits.Connections = 0 }, []string{"limits.connections 0"}},
		{"rate", func(c *settings.Config) { c.Limits.RequestsPerSecond = math.NaN() }, []string{"limits.requests_per_second NaN"}},
		{"requests at a time", func(c *settings.Config) { c.Limits.ConcurrentRequests = -1 }, []string{"limits.concurrent_requests -1"}},
		{"level", func(c *settings.Config) { c.LogLevel = "loud" }, []string{`log_level "loud"`, "debug, info, warning, error"}},
		{"format", func(c *settings.Config) { c.LogFormat = "xml" }, []string{`log_format "xml"`, "text, json"}},
		{"provider", func(c *settings.Config) { c.CloudProvider = "acme" }, []string{`cloud_provider "acme"`, "anthropic"}},
		{
			"provider's address",
			func(c *settings.Config) { c.CloudBaseURL = "gateway:80" },
			[]string{`cloud_base_url "gateway:80"`, "http or https"},
		},
		{"policy", func(c *settings.Config) { c.Policy = "zebra" }, []string{`policy "zebra"`, "knowledge-tree"}},
		{"profile", func(c *settings.Config) { c.Profile = "reckless" }, []string{`profile "reckless"`, "safe"}},
		{"hold-out", func(c *settings.Config) { c.HoldOut = 1.5 }, []string{"hold_out 1.5", "0 to 1"}},
		{"hold-out below", func(c *settings.Config) { c.HoldOut = -0.1 }, []string{"hold_out -0.1"}},
		{"recompute", func(c *settings.Config) { c.Recompute = 1.5 }, []string{"recompute 1.5", "0 to 1"}},
		{"hold-out no number", func(c *settings.Config) { c.HoldOut = math.NaN() }, []string{"hold_out NaN"}},
		{"modulus", func(c *settings.Config) { c.ChunkModulus = 0 }, []string{"chunk_modulus 0", "at least 1"}},
		{"workers", func(c *settings.Config) { c.Workers = -1 }, []string{"workers -1"}},
		{"max tokens", func(c *settings.Config) { c.MaxTokens = -2 }, []string{"max_tokens -2"}},
		{"header", func(c *settings.Config) { c.TrustTenantHeader = "X Tenant" }, []string{`trust_tenant_header "X Tenant"`}},
		{"header with keys", func(c *settings.Config) { c.TrustTenantHeader = "authorization" }, []string{`trust_tenant_header "authorization"`}},
		{"body", func(c *settings.Config) { c.Limits.BodyBytes = 0 }, []string{"limits.body_bytes 0"}},
		{"bodies", func(c *settings.Config) { c.Limits.InFlightBytes = 0 }, []string{"limits.in_flight_bytes 0"}},
		{"memory", func(c *settings.Config) { c.Limits.MemoryBytes = 1 << 20 }, []string{"limits.memory_bytes 1048576: want at least 16777216"}},
		{"headers", func(c *settings.Config) { c.Limits.HeaderBytes = -1 }, []string{"limits.header_bytes -1"}},
		{"contexts", func(c *settings.Config) { c.Limits.Contexts = 0 }, []string{"limits.contexts 0"}},
		{"blocks", func(c *settings.Config) { c.Limits.Blocks = 0 }, []string{"limits.blocks 0"}},
		{"sessions", func(c *settings.Config) { c.Limits.Sessions = 0 }, []string{"limits.sessions 0"}},
		{"tenants", func(c *settings.Config) { c.Limits.Tenants = 0 }, []string{"limits.tenants 0"}},
		{"read header", func(c *settings.Config) { c.Timeouts.ReadHeader = 0 }, []string{"timeouts.read_header 0s"}},
		{"read body", func(c *settings.Config) { c.Timeouts.ReadBody = -time.Second }, []string{"timeouts.read_body -1s"}},
		{"write", func(c *settings.Config) { c.Timeouts.Write = 0 }, []string{"timeouts.write 0s"}},
		{"room", func(c *settings.Config) { c.Timeouts.InFlight = -time.Second }, []string{"timeouts.in_flight -1s"}},
		{"lame duck", func(c *settings.Config) { c.Timeouts.LameDuck = -time.Second }, []string{"timeouts.lame_duck -1s"}},
		{"window", func(c *settings.Config) { c.Plan.Window = -time.Second }, []string{"plan.window -1s"}},
		{"idle", func(c *settings.Config) { c.Timeouts.Idle = 0 }, []string{"timeouts.idle 0s"}},
		{"connect", func(c *settings.Config) { c.Timeouts.UpstreamConnect = 0 }, []string{"timeouts.upstream_connect 0s"}},
		{"answer", func(c *settings.Config) { c.Timeouts.UpstreamHeader = 0 }, []string{"timeouts.upstream_header 0s"}},
		{"drain", func(c *settings.Config) { c.Timeouts.Drain = -1 }, []string{"timeouts.drain -1ns"}},
		{"certificate alone", func(c *settings.Config) { c.TLS.Cert = "c.pem" }, []string{`tls.key ""`}},
		{"authorities alone", func(c *settings.Config) { c.TLS.ClientCA = "ca.pem" }, []string{`tls.key ""`, `tls.cert ""`}},
		{"no key", func(c *settings.Config) { c.Keys = []settings.Key{{Tenant: "a"}} }, []string{"keys[0].key", `""`}},
		{"tenant", func(c *settings.Config) { c.Keys = []settings.Key{{Tenant: "a b", Key: "k"}} }, []string{`keys[0].tenant "a b"`}},
		{
			"long tenant",
			func(c *settings.Config) { c.Keys = []settings.Key{{Tenant: strings.Repeat("x", 129), Key: "k"}} },
			[]string{"keys[0].tenant", "128"},
		},
		{
			"key twice",
			func(c *settings.Config) { c.Keys = []settings.Key{{Key: "hush"}, {Tenant: "b", Key: "hush"}} },
			[]string{"keys[1].key", "keys[0]"},
		},
		{"key no header carries", func(c *settings.Config) { c.Keys = []settings.Key{{Key: "hush\nhush"}} }, []string{"keys[0].key"}},
		{"cloud key no header carries", func(c *settings.Config) { c.CloudAPIKey = "hush hush" }, []string{"cloud_api_key"}},
		{"engine's key no header carries", func(c *settings.Config) { c.InferAPIKey = "hush hush" }, []string{"infer_api_key"}},
		{
			"engine's key and password",
			func(c *settings.Config) { c.InferAPIKey, c.InferAPIURL = "k", "http://u:hush@h" },
			[]string{"infer_api_url", "infer_api_key"},
		},
		{"short salt key", func(c *settings.Config) { c.CacheSaltKey = "hush" }, []string{"cache_salt_key", "16"}},
		{"password kept secret", func(c *settings.Config) { c.InferAPIURL = "ftp://u:hush@h" }, []string{"infer_api_url", "ftp://u:xxxxx@h"}},
		{"password kept secret in no URL", func(c *settings.Config) { c.InferAPIURL = "http://u:hush@h/%zz" }, []string{"infer_api_url"}},
		{
			"embedder",
			func(c *settings.Config) { c.Memory.Embedder = "word2vec" },
			[]string{`memory.embedder "word2vec"`, "auto, minilm, minilm:DIR, lexical"},
		},
		{"embedder without folder", func(c *settings.Config) { c.Memory.Embedder = "minilm:" }, []string{`memory.embedder "minilm:"`, "folder"}},
		{
			"embedder's password",
			func(c *settings.Config) { c.Memory.Embedder = "http://u:hush@h" },
			[]string{`memory.embedder "http://u:xxxxx@h"`, "no user"},
		},
		{
			"embedder's model",
			func(c *settings.Config) { c.Memory.Embedder = "http://h" },
			[]string{`memory.embedder_model ""`, "memory.embedder is a URL"},
		},
		{"embedder's key no header carries", func(c *settings.Config) { c.Memory.EmbedderKey = "hush hush" }, []string{"memory.embedder_key"}},
		{"all at once", func(c *settings.Config) { c.Workers, c.Listen = -1, "x" }, []string{"workers -1", `listen "x"`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cfg := settings.Default()
			c.change(&cfg)
			err := cfg.Validate()
			if !errors.Is(err, settings.ErrBadConfig) {
				t.Fatalf("got %v", err)
			}
			testkit.Contains(t, "error", err.Error(), c.want...)
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("shows a secret: %v", err)
			}
		})
	}
}

// TestBadText: an error says in which line which field is wrong.
func TestBadText(t *testing.T) {
	cases := []struct {
		name, text string
		want       []string
	}{
		{"unknown", "listen: a:1\nlisten_on: b:2\n", []string{"line 2", "listen_on", "unknown field"}},
		{"unknown inside", "limits:\n  contexts: 1\n  contextz: 2\n", []string{"line 3", "limits.contextz", "unknown field"}},
		{"unknown in a list", "keys:\n- tenant: a\n  key: hush\n- kee: hush\n", []string{"line 4", "keys[1].kee", "unknown field"}},
		{"Go's name", "InferAPIURL: http://h\n", []string{"line 1", "InferAPIURL", "unknown field"}},
		{"key that is no text", "model: m\n1: x\n", []string{"line 2", "name of a field"}},
		{"twice", "model: a\nmodel: b\n", []string{"line 2", "model"}},
		{"two documents", "model: a\n---\nmodel: b\n", []string{"line 3", "second document"}},
		{"list", "- a\n", []string{"line 1", "want fields"}},
		{"text", "model\n", []string{"line 1", "want fields"}},
		{"syntax", "model: [a\nkeys: {\n", []string{"line"}},
		{"tab", "limits:\n\tcontexts: 1\n", []string{"line 2"}},
		{"duration", "timeouts:\n  drain: soon\n", []string{"line 2", "timeouts.drain", `"soon"`, "30s"}},
		{"duration without unit", "timeouts: {drain: 30}\n", []string{"line 1", "timeouts.drain", `"30"`, "30s"}},
		{"fraction", "chunk_modulus: 1.5\n", []string{"line 1", "chunk_modulus", `"1.5"`, "whole"}},
		{"too large", "workers: 99999999999999999999\n", []string{"line 1", "workers", "whole"}},
		{"larger than signed", "workers: 18446744073709551615\n", []string{"line 1", "workers", "whole"}},
		{"switch", "shadow: maybe\n", []string{"line 1", "shadow", `"maybe"`, "true or false"}},
		{"switch by number", "shadow: 1\n", []string{"line 1", "shadow", `"1"`}},
		{"share", "hold_out: half\n", []string{"line 1", "hold_out", `"half"`, "number"}},
		{"not a number", "hold_out: .nan\n", []string{"line 1", "hold_out", ".nan"}},
		{"nothing", "model:\n", []string{"line 1", "model", "null"}},
		{"fields for text", "model: {a: b}\n", []string{"line 1", "model", "text"}},
		{"keys without list", "keys: {key: hush}\n", []string{"line 1", "keys", "want a list"}},
		{"key without name", "keys: [hush]\n", []string{"line 1", "keys[0]", "want fields"}},
		{"key that is fields", "cloud_api_key: {hush: hush}\n", []string{"line 1", "cloud_api_key", "want text"}},
		{"anchor", "model: &a hush\n", []string{"line 1", "model"}},
		{"alias", "log_level: &a info\nmodel: *a\n", []string{"line 1", "log_level"}},
		{"merge", "limits: {<<: {contexts: 1}}\n", []string{"line 1", "limits"}},
		{"tag", "model: !!str a\n", []string{"line 1", "model"}},
		{"syntax beside a key", "keys:\n- key: hush\n -tenant: x\n", []string{"line"}},
		{"syntax in a key", "cloud_api_key: \"hush\nmodel: a\n", []string{"line"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			base := settings.Default()
			got, err := settings.Decode([]byte(c.text), base)
			if !errors.Is(err, settings.ErrBadConfig) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(base, got); diff != "" {
				t.Errorf("not the base: %s", diff)
			}
			testkit.Contains(t, "error", err.Error(), c.want...)
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("shows a secret: %v", err)
			}
			file := write(t, "r.yaml", c.text)
			if _, err := (settings.Source{File: file}).Load(); err == nil || !strings.Contains(err.Error(), "r.yaml") {
				t.Errorf("does not name the file: %v", err)
			}
		})
	}
}

func TestBadEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"CONTEXTPILOT_STATELESS_MODE": "maybe", "CONTEXTPILOT_EXTENDED_CACHE": "2",
		"CONTEXTPILOT_MAX_TOKENS": "many",
	} {
		_, err := settings.Source{Env: env(name, value)}.Load()
		if !errors.Is(err, settings.ErrBadConfig) {
			t.Fatalf("%s: %v", name, err)
		}
		testkit.Contains(t, name, err.Error(), name, `"`+value+`"`)
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	if _, err := (settings.Source{File: missing}).Load(); !errors.Is(err, os.ErrNotExist) || !errors.Is(err, settings.ErrBadConfig) ||
		!strings.Contains(err.Error(), missing) {
		t.Errorf("missing: %v", err)
	}
	large := write(t, "large.yaml", strings.Repeat("# long\n", 1<<18))
	if _, err := (settings.Source{File: large}).Load(); !errors.Is(err, settings.ErrBadConfig) ||
		!strings.Contains(err.Error(), "large.yaml") {
		t.Errorf("large: %v", err)
	}
}
