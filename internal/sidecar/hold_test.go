package sidecar_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// A llama.cpp server with several slots is recognised, and prompts are held for it; for others they are not, unless it is set.
func TestHoldSetting(t *testing.T) {
	for _, c := range []struct {
		props, until string
		held         bool
	}{
		{`{"total_slots":4}`, settings.HoldAuto, true},
		{`{"total_slots":1}`, settings.HoldAuto, false},
		{`{"total_slots":4}`, settings.HoldOff, false},
		{`no such path`, settings.HoldAuto, false},
		{`no such path`, settings.HoldAnswer, true},
		{`no such path`, settings.HoldFirstToken, true},
	} {
		t.Run(c.until+" "+c.props, func(t *testing.T) { testHoldSetting(t, c.props, c.until, c.held) })
	}
}

func testHoldSetting(t *testing.T, props, until string, held bool) {
	asked, came, goOn := make(chan struct{}, 1), make(chan struct{}, 2), make(chan struct{})
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // a fake
		switch {
		case r.URL.Path == "/props" && strings.HasPrefix(props, "{"):
			fmt.Fprint(w, props)
			asked <- struct{}{}
		case r.URL.Path == "/props":
			http.Error(w, props, http.StatusNotFound)
			asked <- struct{}{}
		default:
			came <- struct{}{}
			<-goOn
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"choices":[{"message":{"content":"ok"}}],"usage":{"prompt_tokens":1000,"completion_tokens":1}}`)
		}
	}))
	t.Cleanup(engine.Close)
	cfg := settings.Default()
	cfg.InferAPIURL, cfg.Hold.Until = engine.URL, until
	registry := prometheus.NewRegistry()
	api, err := sidecar.New(cfg, sidecar.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := api.Close(); err != nil {
			t.Error(err)
		}
	})
	if until == settings.HoldAuto {
		wg.Go(func() { api.Run(ctx) })
		<-asked
		if held {
			await(t, "the slots are known", func() bool { return api.HoldsBack() })
		}
	}
	var sent sync.WaitGroup
	defer sent.Wait()
	send := func(question string) {
		sent.Go(func() {
			body := docsChat(question, passage(strings.Repeat("x", 2000)))
			w := httptest.NewRecorder()
			api.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, chatPath, strings.NewReader(body)))
			if w.Code != http.StatusOK {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
	send("one")
	<-came
	send("two")
	if held {
		await(t, "the second is held", func() bool { return metric(t, registry, "ragpilot_held_requests", "") == 1 })
	} else {
		<-came
	}
	close(goOn)
	if held {
		<-came
		await(t, "it went on", func() bool {
			return metric(t, registry, "ragpilot_held_requests_total", "served") == 1 && metric(t, registry, "ragpilot_held_seconds_total", "") > 0
		})
	}
}
