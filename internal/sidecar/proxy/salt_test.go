package proxy_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

const saltKey = "a key that is long enough"

// saltOf returns the salt of a body, "" if it has none.
func saltOf(t *testing.T, body string) string {
	t.Helper()
	var b struct {
		Salt *string `json:"cache_salt"`
	}
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if b.Salt == nil {
		return ""
	}
	return *b.Salt
}

// Every prompt of a tenant has its salt, whatever else is done to it or not: no tenant finds in the engine's cache what another
// one has sent. Nothing else changes.
func TestTenantsHaveSalts(t *testing.T) {
	e := newEngine(t)
	shadow, holdOut := false, 0.
	p := newProxy(t, e, func(o *proxy.Options) {
		o.SaltKey, o.Live = saltKey, func() (bool, float64) { return shadow, holdOut }
	})
	plain := chat("s", "q", docs("a", "b"))
	post(p, chatPath, "one", plain)
	one := saltOf(t, e.last())
	if one == "" || len(one) > 128 || strings.Trim(one, "0123456789abcdef") != "" || strings.Contains(one, "one") {
		t.Fatalf("salt %q, want at most 128 characters that any engine takes, and no name", one)
	}
	if want := strings.TrimSuffix(plain, "}") + `,"cache_salt":"` + one + `"}`; e.last() != want {
		t.Errorf("sent %s, want %s", e.last(), want)
	}
	post(p, chatPath, "two", plain)
	if two := saltOf(t, e.last()); two == "" || two == one {
		t.Errorf("another tenant has salt %q", two)
	}
	if post(p, chatPath, "", plain); e.last() != plain {
		t.Errorf("the request of no tenant became %s", e.last())
	}
	for name, c := range map[string]struct {
		path, body, want string
		shadow           bool
		holdOut          float64
		header           []string
	}{
		"completion":        {path: "/v1/completions", body: `{"prompt":"p"}`, want: one},
		"nothing but an ID": {path: "/v1/completions", body: `{"rid":"x"}`, want: one},
		"Anthropic's":       {path: "/v1/messages", body: plain, want: one},
		"responses":         {path: "/v1/responses", body: `{"model":"m","input":"x"}`, want: one},
		"held out":          {body: plain, holdOut: 1, want: one},
		"shadow":            {body: plain, shadow: true, want: one},
		"switched off":      {body: plain, header: []string{"X-ContextPilot-Enabled", "0"}, want: one},
		"empty":             {body: `{}`, want: one},
		"messages twice":    {body: `{"messages":[],` + plain[1:], want: one},
		"null":              {body: `{"cache_salt": null,` + plain[1:], want: one},
		"null, held out":    {body: `{"cache_salt": null,` + plain[1:], holdOut: 1, want: one},
		"null in the end":   {body: `{"cache_salt":"x","cache_salt": null,` + plain[1:], want: one},
		"null, completion":  {path: "/v1/completions", body: `{"cache_salt":null,"prompt":"p"}`, want: one},
		"the client's":      {body: `{"cache_salt":"mine",` + plain[1:], want: "mine"},
		"completion's own":  {path: "/v1/completions", body: `{"cache_salt":"mine","prompt":"p"}`, want: "mine"},
	} {
		shadow, holdOut = c.shadow, c.holdOut
		if c.path == "" {
			c.path = chatPath
		}
		if w := post(p, c.path, "one", c.body, c.header...); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", name, w.Code)
		}
		if got := saltOf(t, e.last()); got != c.want {
			t.Errorf("%s: salt %q, want %q, in %s", name, got, c.want, e.last())
		}
	}
}

// Behind a gateway prompts have the same salts, and what follows the engine's cache gets them.
func TestSaltsAreTold(t *testing.T) {
	e, caches := newEngine(t), &follower{}
	p := newProxy(t, e, func(o *proxy.Options) { o.SaltKey, o.Index, o.Caches = saltKey, &index{}, caches })
	want := ""
	for _, path := range []string{chatPath, "/v1/completions"} {
		body := chat("s", "q", docs("a", "b"))
		post(p, path, "one", body)
		sent := saltOf(t, e.last())
		if want == "" {
			want = sent
		}
		if followed := caches.bodies[len(caches.bodies)-1]; sent == "" || sent != want || saltOf(t, followed) != want {
			t.Errorf("%s: sent with salt %q, followed with %q, want %q", path, sent, saltOf(t, followed), want)
		}
		r := httptest.NewRequestWithContext(tenant.With(context.Background(), "one"), http.MethodPost, path, http.NoBody)
		made := p.Rewrite(r, []byte(body))
		if got := saltOf(t, string(made.Body)); got != want {
			t.Errorf("%s behind a gateway: salt %q, want %q", path, got, want)
		}
		made.Ended(nil, nil, nil)
	}
}
