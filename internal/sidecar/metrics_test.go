package sidecar_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// The metrics show that the store of shared state is gone, while answers go on.
func TestMetricsOfSharedState(t *testing.T) {
	store := miniredis.RunT(t) // a fake; the real server is asked in internal/sidecar/redisorders and internal/testkit/faulttest
	reg := prometheus.NewRegistry()
	l := newTenants(t, sidecar.Options{Registry: reg}, func(c *settings.Config) {
		c.SharedState = settings.Secret("redis://" + store.Addr() + "?budget=2s")
	})
	ask := func(i int) {
		do(t, http.MethodPost, l.front.URL+"/v1/chat/completions", "a", docsChat("what?", passage("x"), passage("y"), passage(fmt.Sprint(i))))
	}
	ask(0)
	if up, missed := metric(t, reg, "ragpilot_shared_state_up", ""),
		metric(t, reg, "ragpilot_shared_state_operations_total", "miss"); up != 1 ||
		missed != 1 {
		t.Errorf("up %v, missed %v", up, missed)
	}
	store.Close()
	for i := range 5 {
		ask(1 + i)
	}
	if up, failed := metric(t, reg, "ragpilot_shared_state_up", ""),
		metric(t, reg, "ragpilot_shared_state_operations_total", "failed"); up != 0 ||
		failed < 5 {
		t.Errorf("up %v, failed %v with nobody there", up, failed)
	}
}

// What is damaged in state_dir is counted, and the sidecar starts with the rest.
func TestMetricsOfDamagedState(t *testing.T) {
	dir := t.TempDir()
	damages := func() float64 {
		reg := prometheus.NewRegistry()
		cfg := settings.Default()
		cfg.InferAPIURL, cfg.StateDir = newRecorder(t).URL, dir
		api, err := sidecar.New(cfg, sidecar.Options{Registry: reg})
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(asTenant(api))
		defer front.Close()
		for i := range 3 {
			do(t, http.MethodPost, front.URL+"/v1/chat/completions", "a", docsChat(fmt.Sprint("question ", i), passage("x"), passage(fmt.Sprint(i))))
		}
		n := metric(t, reg, "ragpilot_state_damages_total", "")
		if err := api.Close(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := damages(); n != 0 {
		t.Errorf("%v damages of new state", n)
	}
	path := filepath.Join(dir, "state.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // in two records
		i := bytes.Index(data, []byte(`{"p":`))
		if i < 0 {
			t.Fatal("no prompts in the state")
		}
		data[i] ^= 1
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := damages(); n != 2 {
		t.Errorf("%v damages, want 2", n)
	}
}

func TestMetricsOfTheIndex(t *testing.T) {
	reg := prometheus.NewRegistry()
	l := newTenants(t, sidecar.Options{Registry: reg}, func(*settings.Config) {})
	for i := range 3 {
		do(
			t,
			http.MethodPost,
			l.front.URL+"/v1/chat/completions",
			"a",
			docsChat(fmt.Sprint("question ", i), passage("x"), passage(fmt.Sprint(i))),
		)
	}
	if n := metric(t, reg, "ragpilot_index_prompts", ""); n != 3 {
		t.Errorf("%v prompts in the index", n)
	}
	if want, got := metric(t, reg, "ragpilot_index_prefix_tokens_total", "expected"),
		metric(t, reg, "ragpilot_index_prefix_tokens_total", "reported"); want <= 0 ||
		got <= 0 {
		t.Errorf("%v tokens expected in the cache, %v reported", want, got)
	}
}

// metric returns the value of a counter or gauge with this value of its label.
func metric(t *testing.T, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if label == "" || len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s %s", name, label)
	return 0
}

// The texts that the dashboard shows go with everything else of a tenant that is forgotten.
func TestForgottenTextsAreNotShown(t *testing.T) {
	l := newTenants(t, sidecar.Options{}, func(c *settings.Config) { c.KeepTexts = true })
	for _, who := range []string{"a", "b"} {
		do(t, http.MethodPost, l.front.URL+"/v1/chat/completions", who, docsChat("what does "+who+" say?", passage("x"), passage("y")))
	}
	do(t, http.MethodPost, l.admin.URL+"/forget?tenant=a", "", "")
	for _, r := range parsed[dashboard.Data](t, do(t, http.MethodGet, l.admin.URL+"/ui/data.json", "", "")).Requests {
		d := parsed[dashboard.Detail](t, do(t, http.MethodGet, l.admin.URL+"/ui/requests/"+r.ID+".json", "", ""))
		if shown := d.Before != nil || d.After != nil; shown != (r.Tenant == "b") {
			t.Errorf("tenant %q: texts shown %v", r.Tenant, shown)
		}
	}
}
