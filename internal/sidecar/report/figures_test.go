package report_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/report"
	"github.com/ragpilot/ragpilot/internal/sidecar/savings"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func newFigures(t testing.TB, o report.Options) (*report.Figures, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	o.Registry = reg
	f, err := report.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f, reg
}

// planned is one of a planned request of which the engine computed 400 of 1,000 tokens.
func planned(change func(*proxy.Report)) proxy.Report {
	r := proxy.Report{
		At: noon, Path: "/v1/chat/completions", Tenant: "t", Session: "s", Model: "m", Planned: true, Share: .5,
		TTFT: 100 * time.Millisecond, Prompt: 1000, Cached: 600, Predicted: 500, LeftOut: 2, Replaced: 1, CharsSaved: 70,
	}
	if change != nil {
		change(&r)
	}
	return r
}

func held(r *proxy.Report) {
	r.Planned, r.HeldOut, r.Cached, r.LeftOut, r.Replaced, r.CharsSaved = false, true, 200, 0, 0, 0
}

// Requests held out are in no ratio of planned ones, and what shadow mode would have saved is not saved.
func TestGroupsAreCountedApart(t *testing.T) {
	f, reg := newFigures(t, report.Options{})
	for range 3 {
		f.Answered(planned(nil))
	}
	f.Answered(planned(held))
	f.Answered(planned(func(r *proxy.Report) { r.Shadow, r.Cached = true, 100 }))
	f.Answered(planned(func(r *proxy.Report) { held(r); r.Shadow, r.Cached = true, 100 }))
	f.Answered(planned(func(r *proxy.Report) { r.Planned, r.Session, r.Prompt, r.Cached, r.CharsSaved = false, "", -1, -1, 0 }))
	f.Answered(planned(func(r *proxy.Report) { r.Failed, r.Prompt, r.Cached, r.CharsSaved = true, -1, -1, 0 }))
	want := report.Totals{
		Requests: 8, Failed: 1, CharsSaved: 210,
		Planned:   report.Group{Requests: 4, Failed: 1, PromptTokens: 3000, CachedTokens: 1800, HitRatio: new(.6)},
		HeldOut:   report.Group{Requests: 1, PromptTokens: 1000, CachedTokens: 200, HitRatio: new(.2)},
		Plain:     report.Group{Requests: 1},
		Shadow:    report.Group{Requests: 2, PromptTokens: 2000, CachedTokens: 200, HitRatio: new(.1)},
		WouldHave: report.WouldHave{LeftOut: 2, Replaced: 1, CharsSaved: 70},
	}
	if diff := cmp.Diff(want, f.Snapshot().Totals); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string]float64{
		`ragpilot_proxied_requests_total group=planned path=/v1/chat/completions result=ok`: 3,
		`ragpilot_proxied_requests_total group=shadow path=/v1/chat/completions result=ok`:  2,
		`ragpilot_prompt_tokens_total group=held-out kind=cached`:                           200,
		`ragpilot_saved_characters_total`:                                                   210,
		`ragpilot_shadow_characters_total`:                                                  70,
	} {
		if got := gathered(t, reg)[name]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// gathered returns counters and gauges by name and labels.
func gathered(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			out[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return out
}

// A saving is measured between sessions, of requests that could have been held out.
func TestSavingIsMeasured(t *testing.T) {
	cost := func(r proxy.Report) (float64, bool) { return float64(r.Prompt-r.Cached) / 1e6, r.Model == "m" }
	f, _ := newFigures(t, report.Options{Cost: cost, Currency: "XTS"})
	for s := range savings.MinSessions {
		for turn := range 3 {
			at := noon.Add(time.Duration(turn) * time.Second)
			f.Answered(planned(func(r *proxy.Report) { r.Session, r.At = fmt.Sprint("p", s), at }))
			f.Answered(planned(func(r *proxy.Report) { held(r); r.Session, r.At, r.TTFT = fmt.Sprint("h", s), at, 300*time.Millisecond }))
			for _, none := range []func(*proxy.Report){
				func(r *proxy.Report) { r.Shadow = true },
				func(r *proxy.Report) { r.Carried = true },
				func(r *proxy.Report) { r.Failed = true },
				func(r *proxy.Report) { r.Session = "" }, // a body that nobody could hold out
				func(r *proxy.Report) { r.Planned = false },
			} {
				f.Answered(planned(func(r *proxy.Report) { r.TTFT, r.At = time.Hour, at; none(r) }))
			}
		}
	}
	s := f.Snapshot()
	want := [2]int{3 * savings.MinSessions, 3 * savings.MinSessions}
	sessions := [2]int{savings.MinSessions, savings.MinSessions}
	for name, c := range map[string]struct {
		f     savings.Figure
		saved float64
	}{"TTFT": {s.TTFT, .2}, "tokens": {s.ComputedTokens, 400}, "money": {*s.Money, 400e-6}} {
		if !c.f.OK || c.f.Samples != want || c.f.Sessions != sessions || c.f.Saved-c.saved > 1e-12 || c.saved-c.f.Saved > 1e-12 {
			t.Errorf("%s: %+v, want %v saved", name, c.f, c.saved)
		}
	}
	f.Answered(planned(func(r *proxy.Report) { r.At, r.Model = noon.Add(time.Minute), "other" }))
	if s = f.Snapshot(); s.Money.Samples != want || s.TTFT.Samples[1] != want[1]+1 || s.Currency != "XTS" {
		t.Errorf("a model without a price: %+v, %+v", s.Money, s.TTFT)
	}
	f.Answered(planned(func(r *proxy.Report) { r.Tenant = "other" }))
	if got := f.Snapshot().TTFT.Sessions[1]; got != savings.MinSessions+2 {
		t.Errorf("%d sessions: another tenant's of the same name is another one", got)
	}
}

// Groups of different times do not compare: when the share changes, measuring begins anew, and answers that were under way
// do not mix in.
func TestShareChanges(t *testing.T) {
	f, _ := newFigures(t, report.Options{})
	add := func(share float64, seconds int) [2]int {
		f.Answered(planned(func(r *proxy.Report) { r.Share, r.At = share, noon.Add(time.Duration(seconds)*time.Second) }))
		return f.Snapshot().TTFT.Samples
	}
	for i, c := range []struct {
		share   float64
		seconds int
		want    int
	}{{0, 0, 0}, {.5, 1, 1}, {.5, 2, 2}, {0, 0, 2}, {.1, 3, 1}, {.5, 2, 1}, {.1, 4, 2}, {.1, 2, 2}, {0, 5, 0}, {.1, 6, 1}} {
		if got := add(c.share, c.seconds); got != [2]int{0, c.want} {
			t.Errorf("step %d: %v samples, want %d", i, got, c.want)
		}
	}
}

func TestCloudAccounts(t *testing.T) {
	p, err := cloudcache.New(cloudcache.Options{Provider: "anthropic", Prices: map[string]cloudcache.Price{"m": {Input: 10}}, Currency: "XTS"})
	if err != nil {
		t.Fatal(err)
	}
	f, reg := newFigures(t, report.Options{Provider: p})
	h := p.Sent("a", "/v1/messages", []byte(`{"model":"m","messages":[{"role":"user","content":"q"}]}`))
	p.Answered(h, cloudcache.Usage{Prompt: 100_000, Written: 300_000, Written1h: 100_000})
	for name, want := range map[string]float64{
		"ragpilot_cloud_tokens_total kind=plain": 100_000, "ragpilot_cloud_tokens_total kind=written": 200_000,
		"ragpilot_cloud_tokens_total kind=written-1h": 100_000,
		"ragpilot_cloud_tokens_total kind=read":       0, "ragpilot_cloud_cost_total currency=XTS": 1 + 2.5 + 2,
		"ragpilot_cloud_saved currency=XTS": -.5 - 1,
	} {
		if got, ok := gathered(t, reg)[name]; got != want || !ok {
			t.Errorf("%s: %v %v, want %v", name, got, ok, want)
		}
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/figures", http.NoBody))
	var got struct {
		Cloud report.Cloud
		Money any `json:"saved_money"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if c := got.Cloud; c.Provider != "anthropic" || *c.Total.Saved != -1.5 || len(c.Tenants) != 1 || c.Tenants[0].Name != "a" ||
		c.Tenants[0].Written != 200_000 {
		t.Errorf("%s", w.Body)
	}
	if got.Money != nil {
		t.Errorf("money without a price of prompts: %s", w.Body)
	}
}

// Without prices there is no money anywhere.
func TestNoPrices(t *testing.T) {
	p, err := cloudcache.New(cloudcache.Options{Provider: "openai"})
	if err != nil {
		t.Fatal(err)
	}
	f, reg := newFigures(t, report.Options{Provider: p})
	text, err := json.Marshal(f.Snapshot())
	if err != nil || strings.Contains(string(text), "cost") || strings.Contains(string(text), "money") ||
		strings.Contains(string(text), "currency") {
		t.Errorf("%s %v", text, err)
	}
	for name := range gathered(t, reg) {
		if strings.Contains(name, "currency") {
			t.Error(name)
		}
	}
}

func TestRegistryIsTaken(t *testing.T) {
	_, reg := newFigures(t, report.Options{})
	if _, err := report.New(report.Options{Registry: reg}); err == nil {
		t.Error("metrics twice in one registry")
	}
}

func TestConcurrentUse(t *testing.T) {
	f, reg := newFigures(t, report.Options{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 200 {
				f.Answered(planned(func(r *proxy.Report) { r.Session = fmt.Sprint(w, i) }))
				f.Snapshot()
			}
		})
	}
	wg.Wait()
	if got := f.Snapshot(); got.Totals.Planned.Requests != 800 || got.TTFT.Samples[1] != 800 {
		t.Errorf("%+v", got)
	}
	gathered(t, reg)
}
