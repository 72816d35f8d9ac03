package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// TestDefaultIsReference: who comes from the reference finds the server where that one was.
func TestDefaultIsReference(t *testing.T) {
	c, err := settings.Source{}.Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(settings.Default(), c); diff != "" {
		t.Errorf("nothing given is not the default: %s", diff)
	}
	if c.Listen != "127.0.0.1:8765" || c.InferAPIURL != "http://localhost:30000" || c.ChunkModulus != 13 || c.LogLevel != "info" ||
		c.Stateless {
		t.Errorf("not the reference's defaults: %v", c)
	}
}

func TestLayers(t *testing.T) {
	file := write(
		t,
		"r.yaml",
		"model: file\ninfer_api_url: http://file:1\npolicy: sorted\nlimits:\n  contexts: 7\ntimeouts: {drain: 1m30s}\nhold_out: "+
			"0.25\nkeys:\n- tenant: a\n  key: secret-a\n",
	)
	c, err := settings.Source{
		File: file,
		Env: env(
			"CONTEXTPILOT_INFER_API_URL",
			"http://env:2",
			"CONTEXTPILOT_MODEL_NAME",
			"env",
			"CONTEXTPILOT_STATELESS_MODE",
			"1",
			"CONTEXTPILOT_EXTENDED_CACHE",
			"1",
			"CONTEXTPILOT_CLOUD_PROVIDER",
			"openai",
			"CONTEXTPILOT_CLOUD_API_KEY",
			"cloud",
			"CONTEXTPILOT_MAX_TOKENS",
			"9",
			"CONTEXTPILOT_POLICY",
			"zebra",
		),
		Flags: func(c *settings.Config) error { c.Model = "flag"; return nil },
	}.Load()
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Default()
	want.Model, want.InferAPIURL, want.Policy, want.HoldOut = "flag", "http://env:2", "sorted", 0.25
	want.Stateless, want.ExtendedCache, want.CloudProvider, want.CloudAPIKey, want.MaxTokens = true, true, "openai", "cloud", 9
	want.Limits.Contexts, want.Timeouts.Drain = 7, 90*time.Second
	want.Keys = []settings.Key{{Tenant: "a", Key: "secret-a"}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	c, err = settings.Source{File: file, Env: env("CONTEXTPILOT_MODEL_NAME", "", "CONTEXTPILOT_STATELESS_MODE", "0")}.Load()
	if err != nil || c.Model != "file" || c.Stateless {
		t.Errorf("an empty variable counts as not set, 0 as off: %v, %v", c, err)
	}
}

func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"key": "from-file\n", "cloud": " cloudy ", "salt": "a salt of some length", "empty": "\n",
		"long": strings.Repeat("x", 10_000),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "r.yaml")
	load := func(text string) (settings.Config, error) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return settings.Source{File: config}.Load()
	}
	c, err := load(
		"keys: [{tenant: t, file: key}]\ncloud_provider: openai\ninfer_api_key_file: key\ncache_salt_key_file: salt\ncloud_api_key_file: " +
			filepath.Join(
				dir,
				"cloud",
			),
	)
	if err != nil || c.InferAPIKey.Reveal() != "from-file" || c.CacheSaltKey.Reveal() != "a salt of some length" ||
		c.Keys[0].Key.Reveal() != "from-file" ||
		c.CloudAPIKey.Reveal() != "cloudy" {
		t.Errorf("keys in files beside the configuration: %v, %v", c, err)
	}
	for text, want := range map[string]string{
		"profile: best.json": filepath.Join(dir, "best.json"), "profile: safe": "safe",
		"profile: /etc/p.json": "/etc/p.json",
	} {
		if c, err := load(text); err != nil || c.Profile != want {
			t.Errorf("%s: profile %q, %v, want %q", text, c.Profile, err, want)
		}
	}
	for text, want := range map[string][]string{
		"keys: [{file: missing}]":                    {"keys[0]", "missing"},
		"keys: [{key: a}, {file: empty}]":            {"keys[1]", "empty"},
		"keys: [{key: seen-by-nobody, file: key}]":   {"keys[0]", "both", "key"},
		"cloud_api_key_file: long":                   {"cloud_api_key", "long", "8192"},
		"keys: [{key: from-file}, {file: key}]":      {"keys[1].key", "keys[0]"},
		"cloud_api_key_file: key\ncloud_api_key: ab": {"cloud_api_key", "both"},
		"infer_api_key_file: key\ninfer_api_key: ab": {"infer_api_key", "both"},
		"cache_salt_key_file: key":                   {"cache_salt_key", "16"},
	} {
		_, err := load(text)
		if !errors.Is(err, settings.ErrBadConfig) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		testkit.Contains(t, text, err.Error(), want...)
		if strings.Contains(err.Error(), "seen-by-nobody") || strings.Contains(err.Error(), "from-file") {
			t.Errorf("%s: the error shows a key: %v", text, err)
		}
	}
}

func TestGoodText(t *testing.T) {
	base := settings.Default()
	cases := []struct {
		name, text string
		want       func(*settings.Config)
	}{
		{"nothing", "", func(*settings.Config) {}},
		{"comments", "# all is well\n", func(*settings.Config) {}},
		{"only comments inside", "limits:\n  # contexts: 1\nkeys:\n", func(*settings.Config) {}},
		{"beginning of a document", "---\nmodel: m\n", func(c *settings.Config) { c.Model = "m" }},
		{"numbers as text", "model: 7\ncloud_api_key: 1_0\n", func(c *settings.Config) { c.Model, c.CloudAPIKey = "7", "1_0" }},
		{"off is text", "admin_addr: \"\"\npolicy: off\n", func(c *settings.Config) { c.AdminAddr, c.Policy = "", "off" }},
		{"whole share", "hold_out: 1\n", func(c *settings.Config) { c.HoldOut = 1 }},
		{"block text", "model: >-\n  m\n", func(c *settings.Config) { c.Model = "m" }},
		{"rest of limits stays", "limits: {sessions: 5}\n", func(c *settings.Config) { c.Limits.Sessions = 5 }},
		{"Windows lines", "model: m\r\nshadow: true\r\n", func(c *settings.Config) { c.Model, c.Shadow = "m", true }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := settings.Default()
			c.want(&want)
			got, err := settings.Decode([]byte(c.text), base)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestListsAreReplaced(t *testing.T) {
	base := settings.Default()
	base.Keys = []settings.Key{{Key: "old"}, {Key: "older"}}
	got, err := settings.Decode([]byte("keys: [{key: new}]\n"), base)
	if err != nil || len(got.Keys) != 1 || got.Keys[0].Key != "new" || base.Keys[0].Key != "old" {
		t.Errorf("%v, %v, base %v", got.Keys, err, base.Keys)
	}
}

func TestWarnings(t *testing.T) {
	c := settings.Default()
	if w := c.Warnings(); len(w) > 0 {
		t.Errorf("the default: %q", w)
	}
	c.Listen, c.AllowAnonymous = "0.0.0.0:8765", true
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "0.0.0.0:8765") {
		t.Errorf("open to everybody: %q", w)
	}
	c.Workers, c.MaxTokens, c.CloudAPIKey, c.ExtendedCache, c.AdminAddr, c.TrustTenantHeader = 4, 100, "hush", true, ":1", "X-Team"
	text := strings.Join(c.Warnings(), "\n")
	testkit.Contains(t, "warnings", text, "workers 4", "max_tokens 100", "cloud_api_key", "extended_cache", "admin_addr :1", "X-Team")
	if strings.Contains(text, "hush") {
		t.Errorf("shows a secret: %s", text)
	}
	c = settings.Default()
	c.CacheSaltKey = "hush hush hush hush"
	testkit.Contains(t, "one tenant", strings.Join(c.Warnings(), "\n"), "cache_salt_key has no effect: neither")
	if c.Keys = []settings.Key{{Tenant: "a", Key: "a key that is long enough"}}; len(c.Warnings()) > 0 {
		t.Errorf("salts of tenants: %q", c.Warnings())
	}
	c.CloudProvider, c.InferAPIKey = "openai", "hush"
	c.InferAPIURL, c.Recompute = "http://other:1", 0.2
	testkit.Contains(
		t,
		"two upstreams",
		strings.Join(c.Warnings(), "\n"),
		"infer_api_url has no effect with cloud_provider",
		"recompute has no effect with cloud_provider",
	)
	c.Keys = []settings.Key{{Key: "fifteen-letters"}}
	testkit.Contains(t, "a short key", strings.Join(c.Warnings(), "\n"), "keys[0].key has 15 characters")
	testkit.Contains(
		t,
		"a cloud provider",
		strings.Join(c.Warnings(), "\n"),
		"cache_salt_key has no effect with",
		"infer_api_key has no effect with",
	)
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"listen: 127.0.0.1:1\nlimits:\n  contexts: 3\ntimeouts: {drain: 5s}\nkeys:\n- {tenant: a, key: b}\n", "1: x", "model: &a b\nkeys: *a",
		"<<: {a: b}", "---\n---\n", "? a\n: b", "hold_out: .inf",
		"model: |\n  a\n", "tls: {cert: [}", "%YAML 1.2\n---\n", "keys:\n-\n-", "model: !!binary aGk=", "\xff\xfe", "{", "a: b: c",
		"model: \"\\x", "limits: {body_bytes: 0x40}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		c, err := settings.Decode(text, settings.Default())
		if err != nil {
			if !errors.Is(err, settings.ErrBadConfig) {
				t.Fatalf("%v", err)
			}
			return
		}
		_ = c.Validate()
		_, _ = c.Warnings(), c.String()
		again, err := settings.Decode(text, c)
		if err != nil {
			t.Fatalf("once more: %v", err)
		}
		if diff := cmp.Diff(c, again); diff != "" && c.HoldOut == c.HoldOut {
			t.Errorf("decoding over the result changes it: %s", diff)
		}
	})
}
