package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// who answers with the tenant and with the headers that could hold a key.
func who(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(
		w,
		"tenant=%q authorization=%q x-api-key=%q",
		tenant.From(r.Context()),
		r.Header.Get("Authorization"),
		r.Header.Get("X-Api-Key"),
	)
}

var twoTeams = []settings.Key{
	{Tenant: "red", Key: "red-key"},
	{Tenant: "blue", Key: "blue-key"},
	{Tenant: "blue", Key: "blue-key-2"},
	{Key: "nobodys-key"},
}

func TestKeys(t *testing.T) {
	r := start(t, onFreePorts(func(c *settings.Config) { c.Keys = twoTeams }), who)
	cases := []struct {
		name   string
		header []string
		want   string // body of 200; empty: 401
	}{
		{"none", nil, ""},
		{"bearer", []string{"Authorization", "Bearer red-key"}, `tenant="red" authorization="" x-api-key=""`},
		{"scheme in small letters", []string{"Authorization", "bearer red-key"}, `tenant="red" authorization="" x-api-key=""`},
		{"x-api-key", []string{"x-api-key", "blue-key"}, `tenant="blue" authorization="" x-api-key=""`},
		{"second key of a tenant", []string{"x-api-key", "blue-key-2"}, `tenant="blue" authorization="" x-api-key=""`},
		{"key without tenant", []string{"x-api-key", "nobodys-key"}, `tenant="" authorization="" x-api-key=""`},
		{
			"key beside the engine's",
			[]string{"x-api-key", "blue-key", "Authorization", "Bearer engine-key"},
			`tenant="blue" authorization="Bearer engine-key" x-api-key=""`,
		},
		{"wrong", []string{"Authorization", "Bearer green-key"}, ""},
		{"beginning of a key", []string{"Authorization", "Bearer red-ke"}, ""},
		{"more than a key", []string{"Authorization", "Bearer red-key2"}, ""},
		{"other case", []string{"Authorization", "Bearer RED-KEY"}, ""},
		{"other scheme", []string{"Authorization", "Basic red-key"}, ""},
		{"no scheme", []string{"Authorization", "red-key"}, ""},
		{"empty bearer", []string{"Authorization", "Bearer "}, ""},
		{"scheme in x-api-key", []string{"x-api-key", "Bearer red-key"}, ""},
		{"in the query", []string{"X-Other", "red-key"}, ""},
		{"tenant claimed without trust", []string{"x-api-key", "nobodys-key", "X-Tenant", "red"}, `tenant="" authorization="" x-api-key=""`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := r.get(t, r.url+"/stats", c.header...)
			if c.want != "" {
				if got.code != http.StatusOK || got.body != c.want {
					t.Errorf("got %d %s, want %s", got.code, got.body, c.want)
				}
				return
			}
			var detail struct{ Detail string }
			if err := json.Unmarshal([]byte(got.body), &detail); got.code != http.StatusUnauthorized || err != nil || detail.Detail == "" {
				t.Errorf("got %d %s", got.code, got.body)
			}
			if h := got.header.Get("WWW-Authenticate"); !strings.HasPrefix(h, "Bearer ") {
				t.Errorf("WWW-Authenticate %q", h)
			}
		})
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := r.get(t, r.url+path); got.code != http.StatusOK {
			t.Errorf("%s without a key: %d", path, got.code)
		}
	}
	text := r.get(t, r.admin+"/metrics").body
	testkit.Contains(
		t,
		"metrics",
		text,
		`ragpilot_http_auth_failures_total{reason="missing"} 5`,
		`ragpilot_http_auth_failures_total{reason="wrong"} 5`,
	)
}

// TestKeysStay: no handler sees a key, whatever its characters are and wherever a client puts it.
func TestKeysStay(t *testing.T) {
	keys := []string{
		"abc,def-0123456789;xyz",
		`abc"def-0123456789xyz`,
		"a=b==0123456789abcdef",
		"%41%42%43-0123456789",
		"short;key",
		"plain-key-0123456789abc",
	}
	var configured []settings.Key
	for _, k := range keys {
		configured = append(configured, settings.Key{Tenant: "red", Key: settings.Secret(k)})
	}
	r := start(
		t,
		onFreePorts(func(c *settings.Config) { c.Keys, c.TrustTenantHeader = configured, "X-Team" }),
		func(w http.ResponseWriter, r *http.Request) {
			_ = r.Header.Write(w)
			fmt.Fprint(w, "query=", r.URL.RawQuery)
		},
	)
	for _, key := range keys {
		for name, header := range map[string][]string{
			"bearer": {"Authorization", "Bearer " + key}, "token": {"Authorization", "token  " + key + " "}, "x-api-key": {"X-Api-Key", key},
			"twice": {"X-Api-Key", key, "Authorization", "Bearer " + key}, "odd space": {"Authorization", "Bearer \u00a0" + key + "\u0085"},
		} {
			got := r.get(
				t,
				r.url+"/stats?a=1&k="+url.QueryEscape(key)+"&k="+url.QueryEscape(url.QueryEscape(key))+"&b=2",
				append(header, "X-Team", "blue")...)
			if got.code != http.StatusOK || strings.Contains(got.body, key) || strings.Contains(got.body, "0123456789") ||
				!strings.HasSuffix(got.body, "query=a=1&b=2") {
				t.Errorf("key %q, %s: %d %s", key, name, got.code, got.body)
			}
			if !strings.Contains(got.body, "X-Team: red") {
				t.Errorf("key %q, %s: another tenant's name is sent on: %s", key, name, got.body)
			}
		}
	}
	if got := r.get(t, r.url+"/v1/models/plain-key-0123456789abc", "X-Api-Key", keys[0]); got.code != http.StatusBadRequest ||
		strings.Contains(got.body, "plain-key") {
		t.Errorf("in the path: %d %s", got.code, got.body)
	}
}

// TestRefusedConnections: a refused request does not hold its connection, nor is its body waited for.
func TestRefusedConnections(t *testing.T) {
	r := start(t, onFreePorts(func(c *settings.Config) { c.Keys = twoTeams }), hello)
	for name, head := range map[string]string{
		"no key": "POST /stats HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
		"page":   "POST /stats HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 100000\r\n\r\n",
		"path":   "POST /a/%2e%2e HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
		"star":   "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
		_, _ = io.WriteString(conn, head)
		text, err := io.ReadAll(conn) // to the end of the connection
		if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 40") {
			t.Errorf("%s: %q %v", name, text, err)
		}
		_ = conn.Close()
	}
}

func TestTrustedTenant(t *testing.T) {
	r := start(t, onFreePorts(func(c *settings.Config) { c.TrustTenantHeader, c.Keys = "X-Team", twoTeams }), who)
	open := start(t, onFreePorts(func(c *settings.Config) { c.TrustTenantHeader = "X-Team" }), who)
	cases := []struct {
		name   string
		r      *running
		header []string
		code   int
		want   string
	}{
		{"header", open, []string{"X-Team", "green"}, 200, `tenant="green"`},
		{"no header", open, nil, 200, `tenant=""`},
		{"header twice", open, []string{"X-Team", "green", "X-Team", "red"}, 400, "X-Team"},
		{"empty header", open, []string{"X-Team", ""}, 400, "X-Team"},
		{"header with spaces", open, []string{"X-Team", "a b"}, 400, "X-Team"},
		{"long header", open, []string{"X-Team", strings.Repeat("x", 129)}, 400, "128"},
		{"the key's tenant wins", r, []string{"x-api-key", "red-key", "X-Team", "blue"}, 200, `tenant="red"`},
		{"key without tenant", r, []string{"x-api-key", "nobodys-key", "X-Team", "green"}, 200, `tenant="green"`},
		{"header without key", r, []string{"X-Team", "green"}, 401, "key"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.r.get(t, c.r.url+"/", c.header...); got.code != c.code || !strings.Contains(got.body, c.want) {
				t.Errorf("got %d %s, want %d %s", got.code, got.body, c.code, c.want)
			}
		})
	}
}

// TestSecretsAreNotShown: neither by any way of printing a configuration, nor by any line of a log.
func TestSecretsAreNotShown(t *testing.T) {
	c := onFreePorts(func(c *settings.Config) {
		c.Keys = []settings.Key{{Tenant: "red", Key: "hush-key"}}
		c.CloudAPIKey, c.CloudProvider, c.InferAPIURL = "hush-cloud", "openai", "http://user:hush-password@engine:1"
	})
	shown := c.String()
	for _, verb := range []string{"%v", "%+v", "%s", "%q", "%x", "%d", "%#v"} {
		shown += fmt.Sprintf(verb, c.Keys) + fmt.Sprintf(verb, c.CloudAPIKey)
	}
	text, err := json.Marshal(c.Keys)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, logger := range []*slog.Logger{slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))} {
		logger.Info("x", "keys", c.Keys, "cloud", c.CloudAPIKey, "config", c)
	}
	if shown += string(text) + out.String(); strings.Contains(shown, "hush") {
		t.Errorf("shown: %s", shown)
	}
	testkit.Contains(t, "shown", shown, "[redacted]", "red")

	for _, format := range []string{"text", "json"} {
		c.LogFormat = format
		r := start(t, c, func(_ http.ResponseWriter, r *http.Request) {
			prompt, _ := io.ReadAll(r.Body)
			if r.URL.Path == "/v1/completions" {
				panic("cannot plan " + string(prompt))
			}
		}, func() (settings.Config, error) { return c, nil })
		for _, path := range []string{"/v1/completions?hush=query", "/hush/path", "/v1/hush", "/reorder"} {
			for _, header := range [][]string{{"Authorization", "Bearer hush-key"}, {"x-api-key", "hush-wrong"}} {
				r.ask(t, http.MethodPost, r.url+path, strings.NewReader("hush-prompt"), append(header, "X-Request-Id", "hush id")...)
			}
		}
		if err := r.Reload(); err != nil {
			t.Error(err)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if strings.Contains(r.log.String(), "hush") {
			t.Errorf("%s: logged:\n%s", format, r.log)
		}
		testkit.Contains(t, format, r.log.String(), "panic", "request", "red", "401")
	}
}
