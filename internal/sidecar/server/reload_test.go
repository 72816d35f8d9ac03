package server_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestReload: what can change without a restart does, and what cannot is named.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.yaml")
	load := func() (settings.Config, error) {
		return settings.Source{File: file, Flags: func(c *settings.Config) error {
			c.Listen, c.AdminAddr = "127.0.0.1:0", "127.0.0.1:0"
			return nil
		}}.Load()
	}
	rewrite := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite("keys: [{tenant: red, key: old-key}]\n")
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, cfg, hello, load)
	code := func(key string, bytes int) int {
		return r.ask(t, http.MethodPost, r.url+"/reorder", strings.NewReader(strings.Repeat("x", bytes)), "x-api-key", key).code
	}
	if code("old-key", 100) != 200 || code("new-key", 100) != 401 {
		t.Error("before")
	}

	rewrite(
		"keys: [{tenant: red, key: new-key}]\nlimits: {body_bytes: 50, in_flight_bytes: 77, contexts: 8, blocks: 7, sessions: 9, " +
			"tenants: 6, header_bytes: 9999}\nhold_out: 0.5\nshadow: true\nlog_level: error\npolicy: sorted\ntimeouts: {drain: " +
			"1s}\nlisten: 127.0.0.1:1\n",
	)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if code("old-key", 10) != 401 || code("new-key", 10) != 200 || code("new-key", 100) != 413 {
		t.Error("keys and limits of the new file do not hold")
	}
	live := r.live.Load()
	if live.HoldOut != 0.5 || !live.Shadow || live.Limits.Contexts != 8 || live.Limits.Blocks != 7 || live.Limits.InFlightBytes != 77 ||
		live.LogLevel != "error" ||
		r.live.Level() != slog.LevelError ||
		len(live.Keys) != 1 {
		t.Errorf("live: %+v", live)
	}
	if was := settings.Default().Limits; live.Limits.HeaderBytes != was.HeaderBytes || live.Limits.MemoryBytes != was.MemoryBytes ||
		live.Limits.Sessions != was.Sessions ||
		live.Limits.Tenants != was.Tenants {
		t.Errorf("limits changed that are read once: %+v", live.Limits)
	}

	for _, bad := range []string{"keys: [{key: new-key}, {key: new-key}]\n", "no_such: 1\n", "hold_out: 7\n", "keys: [{file: missing}]\n"} {
		rewrite(bad)
		if err := r.Reload(); !errors.Is(err, settings.ErrBadConfig) {
			t.Errorf("%s: %v", bad, err)
		}
		if got := r.live.Load(); got.HoldOut != 0.5 || code("new-key", 10) != 200 {
			t.Errorf("%s: changed something: %+v", bad, got)
		}
	}
	testkit.Contains(
		t,
		"metrics",
		r.get(t, r.admin+"/metrics").body,
		`ragpilot_config_reloads_total{result="refused"} 4`,
		`ragpilot_config_reloads_total{result="taken"} 1`,
	)

	rewrite(
		"log_level: debug\npolicy: sorted\nlimits: {sessions: 9, tenants: 6, header_bytes: 9999, memory_bytes: 99999999}\ntimeouts: " +
			"{drain: 1s}\nmodel: m\n",
	)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if code("", 100) != 200 {
		t.Error("keys were taken out of the file, and are asked for")
	}
	testkit.Contains(
		t,
		"log",
		r.log.String(),
		"configuration reloaded",
		"changed=\"[log_level shadow hold_out keys limits.body_bytes limits.in_flight_bytes limits.contexts limits.blocks]\"",
		"restart is needed",
		"fields=\"[model policy limits.memory_bytes limits.header_bytes limits.sessions limits.tenants timeouts.drain]\"",
	)
}

// TestReloadBehindAGateway: bodies over the gateway's protocol keep the bound with which the process began, and the log says so.
func TestReloadBehindAGateway(t *testing.T) {
	for addr, want := range map[string]bool{"": false, "127.0.0.1:1": true} {
		cfg := onFreePorts(func(c *settings.Config) { c.ExtProcAddr = addr })
		r := start(t, cfg, hello, func() (settings.Config, error) {
			next := cfg
			next.Limits.BodyBytes = 50
			return next, nil
		})
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		testkit.Contains(t, "log", r.log.String(), "changed=[limits.body_bytes]")
		if got := strings.Contains(r.log.String(), `fields="[limits.body_bytes of ext_proc_addr]"`); got != want {
			t.Errorf("ext_proc_addr %q: %s", addr, r.log)
		}
	}
}

// TestHangup: a signal reloads, and why it did not is in the log.
func TestHangup(t *testing.T) {
	cfg := onFreePorts()
	hangup := make(chan os.Signal)
	results := make(chan error, 2)
	results <- fmt.Errorf("%w: it rains", settings.ErrBadConfig)
	results <- nil
	r := &running{log: new(testkit.Log)}
	live := settings.NewLive(cfg)
	r.begin(
		t,
		cfg,
		http.HandlerFunc(hello),
		server.Options{Live: live, Logger: server.NewLogger(r.log, "text", live), Hangup: hangup, Load: func() (settings.Config, error) {
			next := cfg
			next.HoldOut = 1
			return next, <-results
		}},
	)
	hangup <- syscall.SIGHUP
	hangup <- syscall.SIGHUP // taken when the first one is done
	testkit.Eventually(t, "reload", func() bool { return live.Load().HoldOut == 1 })
	testkit.Contains(t, "log", r.log.String(), "level=ERROR", "the old one stays", "it rains")
}

func TestNothingToReload(t *testing.T) {
	r := start(t, onFreePorts(), hello)
	if err := r.Reload(); err == nil {
		t.Error("no error")
	}
}

// TestReloadUnderLoad is for the race detector.
func TestReloadUnderLoad(t *testing.T) {
	shares := make(chan float64, 1)
	cfg := onFreePorts(func(c *settings.Config) { c.Keys = twoTeams })
	r := start(t, cfg, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, func() (settings.Config, error) {
		next := cfg
		next.HoldOut = <-shares
		return next, nil
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 100 {
			shares <- float64(i) / 100
			if err := r.Reload(); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 100 {
		if got := r.ask(t, http.MethodPost, r.url+"/reorder", strings.NewReader("text"), "x-api-key", "red-key"); got.body != "text" {
			t.Errorf("%d %s", got.code, got.body)
		}
		_ = r.live.Load()
		_ = r.live.Level()
	}
	select {
	case <-ended:
	case <-time.After(testkit.Patience):
		t.Error("reloads did not end")
	}
}
