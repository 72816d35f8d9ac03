package sidecar_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit/wiretest"
)

// TestReplay plays every recorded exchange with /v1 and /cloud, and compares all of it: the answer, and what reached the
// engine. Package httpapi plays the others.
func TestReplay(t *testing.T) {
	runner := &wiretest.Runner{Rules: differences, Start: start}
	examples, steps := 0, 0
	for _, ex := range wiretest.Examples(t) {
		if !ex.Uses("/v1", "/cloud") {
			continue
		}
		examples++
		steps += len(ex.Steps)
		t.Run(ex.Name, func(t *testing.T) { runner.Run(t, ex) })
	}
	runner.Unused(t)
	if got, want := fmt.Sprint(examples, steps), "38 123"; got != want {
		t.Errorf("replayed %s examples and steps, want %s", got, want)
	}
}

// start makes a server as an example's mode says, with the engine or the provider at that address.
func start(t testing.TB, ex wiretest.Example, engine string) string {
	t.Helper()
	cfg := settings.Default()
	cfg.Compat = true
	cfg.Stateless = ex.Mode == "stateless"
	cfg.InferAPIURL = engine
	var o sidecar.Options
	if provider, ok := strings.CutPrefix(ex.Mode, "cloud-"); ok {
		cfg.CloudProvider, cfg.CloudAPIKey = provider, "KEY"
		cfg.ExtendedCache = strings.HasSuffix(ex.Name, "-extended")
		base, err := url.Parse(engine)
		if err != nil {
			t.Fatal(err)
		}
		if provider == "minimax" {
			base.Path = "/anthropic"
		}
		o.ProviderBase = base
	}
	api, err := sidecar.New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return wiretest.Serve(t, api)
}
