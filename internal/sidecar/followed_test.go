package sidecar_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/cachewatch"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// followed is a sidecar in front of a fake engine whose events it follows.
type followed struct {
	engine *kvEngine
	api    *sidecar.API
	admin  *http.ServeMux
	log    *testkit.Log
}

// follow starts one; engines are those of the settings, with the fake's addresses in place of E and R.
func follow(t testing.TB, e *kvEngine, live *settings.Live, engines ...settings.Engine) *followed {
	t.Helper()
	return followAs(t, e, live, func(c *settings.Config) { c.Engines = engines })
}

// followAs starts one with settings of its own.
func followAs(t testing.TB, e *kvEngine, live *settings.Live, change func(*settings.Config)) *followed {
	t.Helper()
	cfg := settings.Default()
	cfg.InferAPIURL = e.URL
	change(&cfg)
	if live == nil {
		live = settings.NewLive(cfg)
	}
	f := &followed{engine: e, admin: http.NewServeMux(), log: new(testkit.Log)}
	var err error
	if f.api, err = sidecar.New(cfg, sidecar.Options{Live: live, Log: slog.New(slog.NewTextHandler(f.log, nil))}); err != nil {
		t.Fatal(err)
	}
	f.api.Admin(f.admin)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.api.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = f.api.Close()
	})
	return f
}

// vllmAt is the engine of most tests.
func vllmAt(e *kvEngine) settings.Engine {
	return settings.Engine{Kind: "vllm", Events: e.events, Replay: e.replay}
}

// ready waits until the engine's events are followed and it was asked what it can do.
func (f *followed) ready(t testing.TB) {
	t.Helper()
	await(t, "events are followed", func() bool {
		c := f.caches()
		return c != nil && len(c.Sources) > 0 && c.Sources[0].Complete && c.Sources[0].Version != ""
	})
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not so: ", what)
		}
	}
}

func (f *followed) caches() *cachewatch.Snapshot {
	w := httptest.NewRecorder()
	f.admin.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/figures", http.NoBody))
	var out struct{ Caches *cachewatch.Snapshot }
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		return nil
	}
	return out.Caches
}

// shown is what the dashboard shows.
func (f *followed) shown(t testing.TB) dashboard.Data {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/ui/data.json", http.NoBody)
	r.Host = "localhost"
	f.admin.ServeHTTP(w, r)
	var data dashboard.Data
	if err := json.Unmarshal(w.Body.Bytes(), &data); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return data
}

// index returns live prompts and tokens by tenant.
func (f *followed) index(t testing.TB) map[string][2]int {
	t.Helper()
	out := map[string][2]int{}
	for _, e := range f.shown(t).Engines {
		now := out[e.Tenant]
		out[e.Tenant] = [2]int{now[0] + *e.Live, now[1] + *e.Tokens}
	}
	return out
}

// ask sends a body for a tenant and returns the answer.
func (f *followed) ask(t testing.TB, name, path, body string, header ...string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	f.api.ServeHTTP(w, r.WithContext(tenant.With(r.Context(), name)))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// chatOf is a question behind documents, four of 400 bytes, that have a word in them; more is added to the body.
func chatOf(word, more string) string {
	var docs strings.Builder
	for i := range 4 {
		fmt.Fprintf(&docs, "<document>%s</document>", strings.Repeat(fmt.Sprintf("%s%d ", word, i), 400/(len(word)+2)))
	}
	text, _ := json.Marshal("Answer.\n<documents>" + docs.String() + "</documents>")
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":%s},{"role":"user","content":"why?"}]%s}`, text, more)
}

const chatPath = "/v1/chat/completions"
