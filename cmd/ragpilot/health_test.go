package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHealth: 200 is well, anything else is an error that says what came; --ready asks the other page.
func TestHealth(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.Error(w, "draining", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	if out, err := run(t, "health", "--admin-addr", addr); err != nil || out != "" {
		t.Errorf("%q, %v", out, err)
	}
	t.Run("not ready", func(t *testing.T) {
		if _, err := run(t, "health", "--ready", "--admin-addr", addr); err == nil || !strings.Contains(err.Error(), "503: draining") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("by the environment", func(t *testing.T) {
		t.Setenv("RAGPILOT_ADMIN_ADDR", addr)
		if _, err := run(t, "health"); err != nil {
			t.Error(err)
		}
	})
	t.Run("no server", func(t *testing.T) {
		if _, err := run(t, "health", "--admin-addr", strings.TrimPrefix(refusedURL(t), "http://")); err == nil {
			t.Error("no error")
		}
		if _, err := run(t, "health", "--admin-addr", ""); err == nil || !strings.Contains(err.Error(), "--admin-addr") {
			t.Errorf("got %v", err)
		}
	})
}
