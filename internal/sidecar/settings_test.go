package sidecar_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// whole is a running server with everything in it.
type whole struct {
	url string
	log *testkit.Log
}

func startWhole(t *testing.T, change func(*settings.Config)) whole {
	t.Helper()
	cfg := settings.Default()
	cfg.Listen, cfg.AdminAddr = "127.0.0.1:0", ""
	change(&cfg)
	live, log := settings.NewLive(cfg), new(testkit.Log)
	logger := server.NewLogger(log, "text", live)
	api, err := sidecar.New(cfg, sidecar.Options{Live: live, Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	server, err := server.New(cfg, api, server.Options{Live: live, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = api.Close()
	})
	<-server.Listening()
	return whole{"http://" + server.Addr(), log}
}

func (s whole) post(t *testing.T, path, body string) reply {
	t.Helper()
	return request(t, http.MethodPost, s.url+path, body)
}

// The reference's order of later answers can be asked for by a setting.
func TestCompatIncrementalOrderSetting(t *testing.T) {
	for _, compat := range []bool{false, true} {
		s := startWhole(t, func(c *settings.Config) { c.CompatIncrementalOrder = compat })
		s.post(t, "/reorder", `{"contexts":[[1,2,3],[1,2,4],[8,9]]}`)
		text := s.post(t, "/reorder", `{"contexts":[[3,2,1],[30,31],[9,8]]}`).text
		if got := !strings.Contains(text, `"reordered_by_input"`); got != compat {
			t.Errorf("compat %v: %s", compat, text)
		}
	}
}

// Limits of requests hold as they are now, without a restart.
func TestLimitsAreReloaded(t *testing.T) {
	cfg := settings.Default()
	live := settings.NewLive(cfg)
	api, err := sidecar.New(cfg, sidecar.Options{Live: live})
	if err != nil {
		t.Fatal(err)
	}
	next := cfg
	server, err := server.New(cfg, api, server.Options{Live: live, Load: func() (settings.Config, error) { return next, nil }})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		contexts, blocks, want int
	}{
		{4096, 1_000_000, http.StatusOK},
		{1, 1_000_000, http.StatusRequestEntityTooLarge},
		{2, 2, http.StatusRequestEntityTooLarge},
		{2, 3, http.StatusOK},
	} {
		next.Limits.Contexts, next.Limits.Blocks = c.contexts, c.blocks
		if err := server.Reload(); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/schedule", strings.NewReader(`{"contexts":[[1,2],[3]]}`)))
		if w.Code != c.want {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

// What is not found under /cloud/ is answered as elsewhere.
func TestErrorsUnderCloud(t *testing.T) {
	s := startWhole(t, func(*settings.Config) {})
	for _, c := range []struct{ method, path, allow, want string }{
		{"POST", "/cloud/stats", "GET, HEAD", `405 {"detail":"Method Not Allowed"}`},
		{"GET", "/cloud/x", "", `404 {"detail":"Not Found"}`},
		{"POST", "/cloud/", "", `404 {"detail":"Not Found"}`},
		{"GET", "/cloud/stats", "", `404 {"detail":"Cloud proxy mode not enabled. Start with --cloud-provider."}`},
	} {
		req := testkit.Request(t, c.method, s.url+c.path, http.NoBody)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		got := fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(text)))
		if got != c.want || resp.Header.Get("Allow") != c.allow || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %s %v", c.method, c.path, got, resp.Header)
		}
	}
}

// No answer says where the engine is; the ID in its answer leads to the line that says so.
// TestProfileSetting: with "safe" the first document of a prompt is sent last, and by default where it was.
func TestProfileSetting(t *testing.T) {
	const body = `{"messages":[{"role":"system","content":"Answer. <documents><document>North is cold and dark.</document>` +
		`<document>South is warm and wet.</document><document>West is far, far away.</document></documents>"},{"role":"user",` +
		`"content":"Where?"}]}`
	var sent atomic.Pointer[string]
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		text := string(data)
		sent.Store(&text)
		_, _ = io.WriteString(w, `{"choices":[]}`)
	}))
	defer engine.Close()
	for profile, want := range map[string][]string{"": {"North", "South", "West"}, "safe": {"South", "West", "North"}} {
		s := startWhole(t, func(c *settings.Config) { c.InferAPIURL, c.Profile = engine.URL, profile })
		if got := s.post(t, "/v1/chat/completions", body); got.code != http.StatusOK {
			t.Fatalf("%+v", got)
		}
		at := -1
		for _, name := range want {
			next := strings.Index(*sent.Load(), name)
			if next <= at {
				t.Errorf("profile %q sent %s, want the order %v", profile, *sent.Load(), want)
			}
			at = next
		}
	}
}

func TestFailureIsInTheLog(t *testing.T) {
	down := testkit.FreeAddress(t)
	s := startWhole(t, func(c *settings.Config) { c.InferAPIURL = "http://" + down })
	got := s.post(t, "/v1/chat/completions", `{"messages":[]}`)
	if got.code != http.StatusBadGateway || got.text != `{"detail":"Backend error: connection refused"}`+"\n" {
		t.Errorf("%d %s", got.code, got.text)
	}
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "upstream failed") && strings.Contains(line, "request_id="+got.header.Get("X-Ragpilot-Request-Id")) &&
			strings.Contains(line, down) {
			return
		}
	}
	t.Errorf("log: %s", s.log)
}

// All endpoints share the room for bodies; one whose answer has begun needs none.
func TestBodiesShareRoom(t *testing.T) {
	arrived, begin, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-begin
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-goOn
	}))
	defer e.Close()
	s := startWhole(t, func(c *settings.Config) {
		c.InferAPIURL, c.Limits.InFlightBytes, c.Timeouts.InFlight = e.URL, 150_000, 0
	})
	padding := strings.Repeat(" ", 100_000)
	var stream sync.WaitGroup
	stream.Go(func() { s.post(t, "/v1/chat/completions", `{"messages":[]`+padding+`}`) })
	<-arrived
	for _, path := range []string{"/reorder", "/v1/messages", "/v1/completions"} {
		got := s.post(t, path, `{"contexts":[[1]],"messages":[]`+padding+`}`)
		if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" || !strings.Contains(got.text, "try again") {
			t.Errorf("%s: %+v", path, got)
		}
	}
	close(begin)
	defer stream.Wait()
	defer close(goOn)
	for end := time.Now().Add(time.Minute); ; { // as soon as the answer has begun
		if s.post(t, "/reorder", `{"contexts":[[1]]`+padding+`}`).code == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no room while the answer goes on")
		}
	}
}
