package sidecar_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/report"
	"github.com/ragpilot/ragpilot/internal/sidecar/savings"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// asTenant serves a handler to clients of the tenant that a header of the test names, as the server does by their keys.
func asTenant(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(tenant.With(r.Context(), r.Header.Get("X-Test-Tenant"))))
	})
}

// tenants is a live sidecar whose clients have tenants.
func newTenants(t *testing.T, o sidecar.Options, change func(*settings.Config)) live {
	t.Helper()
	cfg := settings.Default()
	cfg.InferAPIURL = newRecorder(t).URL
	change(&cfg)
	api, err := sidecar.New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	api.Admin(mux)
	l := live{httptest.NewServer(asTenant(api)), httptest.NewServer(mux)}
	t.Cleanup(func() { l.front.Close(); l.admin.Close() })
	return l
}

// do asks as a tenant's client and returns the whole answer.
func do(t *testing.T, method, address, name, body string, header ...string) string {
	t.Helper()
	r := request(t, method, address, body, append([]string{"X-Test-Tenant", name}, header...)...)
	if r.code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, address, r.code, r.text)
	}
	return r.text
}

func parsed[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// docsChat is a question about documents that stand in the system text.
func docsChat(question string, documents ...string) string {
	system := "Answer from these. <documents>\n<document>" + strings.Join(documents, "</document>\n<document>") + "</document>\n</documents>"
	text, _ := json.Marshal(
		object{"model": "m", "messages": []object{{"role": "system", "content": system}, {"role": "user", "content": question}}},
	)
	return string(text)
}

func passage(name string) string { return strings.Repeat("what the passage "+name+" says ", 40) }

// The dashboard's picture of a cache is that of one tenant's prompts, without a word of them; no other tenant's block is in
// it, even where the text is the same.
func TestPicturesAreOfOneTenant(t *testing.T) {
	l := newTenants(t, sidecar.Options{}, func(*settings.Config) {})
	for i := range 4 {
		for _, name := range []string{"red", "blue"} {
			body := docsChat(fmt.Sprint("question ", i), passage("shared by all"), passage("of "+name), passage(fmt.Sprint("of turn ", i)))
			do(t, http.MethodPost, l.front.URL+"/v1/chat/completions", name, body)
		}
	}
	d := parsed[dashboard.Data](t, do(t, http.MethodGet, l.admin.URL+"/ui/data.json", "", ""))
	if len(d.Engines) != 2 || d.Engines[0].Tenant != "blue" || d.Engines[1].Tenant != "red" {
		t.Fatalf("engines %+v", d.Engines)
	}
	pictures := map[string]int{} // blocks by name: those of texts that only one tenant has are in one picture
	for _, e := range d.Engines {
		text := do(t, http.MethodGet, l.admin.URL+"/ui/engines/"+e.ID+".json", "", "")
		p := parsed[dashboard.Picture](t, text)
		if p.Live != 4 || *e.Live != 4 || p.Seen != 4 || p.Blocks != 2+4 || len(p.Parts) != 6 || p.Parts[0].Requests != 4 ||
			p.Parts[1].Parent != 0 ||
			p.Parts[1].Requests != 4 {
			t.Errorf("%s: %s", e.Tenant, text)
		}
		for _, part := range p.Parts {
			pictures[part.Name]++
		}
		if *e.HitRatio < .4 || len(p.Samples) == 0 {
			t.Errorf("%s: hit ratio %v, samples %v", e.Tenant, *e.HitRatio, p.Samples)
		}
		if strings.Contains(text, "passage") || strings.Contains(text, "Answer from") {
			t.Errorf("%s: a text is shown: %s", e.Tenant, text)
		}
	}
	own := 0
	for _, n := range pictures {
		own += n % 2
	}
	if own != 2 || len(pictures) != 7 {
		t.Errorf("%d blocks, %d of them of one tenant alone, want 7 and 2", len(pictures), own)
	}
}

// A tenant that asks for its account gets its own and no word of another.
func TestAccountsAreOfOneTenant(t *testing.T) {
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(
			w,
			`{"content":[],"usage":{"input_tokens":100,"cache_read_input_tokens":3000,"cache_creation_input_tokens":1000,"output_tokens":10}}`,
		)
	}))
	t.Cleanup(cloud.Close)
	base, err := url.Parse(cloud.URL)
	if err != nil {
		t.Fatal(err)
	}
	l := newTenants(t, sidecar.Options{ProviderBase: base}, func(c *settings.Config) {
		c.CloudProvider, c.CloudAPIKey, c.Currency = "anthropic", "KEY", "XTS"
		c.Prices = []settings.Price{{Model: "m*", Input: 10, Output: 50}}
	})
	const body = `{"model":"m1","messages":[{"role":"user","content":"q"}]}`
	for _, name := range []string{"red", "red", "blue"} {
		do(t, http.MethodPost, l.front.URL+"/v1/messages", name, body)
	}
	for name, want := range map[string]float64{"red": 2, "blue": 1, "green": 0} {
		text := do(t, http.MethodGet, l.front.URL+"/cloud/stats", name, "")
		got := parsed[struct{ Account map[string]any }](t, text).Account
		if got["requests"] != want || got["read_tokens"] != 3000*want || got["saved"] != (3000*.9-1000*.25)*10/1e6*want {
			t.Errorf("%s: %s", name, text)
		}
		for _, other := range []string{"red", "blue", "tenant"} {
			if strings.Contains(text, other) {
				t.Errorf("%s sees %q: %s", name, other, text)
			}
		}
	}
	s := parsed[report.Snapshot](t, do(t, http.MethodGet, l.admin.URL+"/figures", "", ""))
	if s.Cloud == nil || s.Cloud.Total.Requests != 3 || len(s.Cloud.Tenants) != 2 ||
		s.Cloud.Tenants[0].Requests+s.Cloud.Tenants[1].Requests != 3 ||
		s.Currency != "XTS" ||
		s.Money == nil {
		t.Errorf("%+v", s)
	}
	if p := s.Totals.Planned; p.PromptTokens != 3*4100 || p.CachedTokens != 3*3000 {
		t.Errorf("Anthropic's prompt is what was computed and what was read: %+v", p)
	}
	d := parsed[dashboard.Data](t, do(t, http.MethodGet, l.admin.URL+"/ui/data.json", "", ""))
	if d.Cloud == nil || d.Cloud.Total.Answers != 3 || d.Cloud.Currency != "XTS" || d.Saved.Money == nil {
		t.Errorf("%+v", d.Cloud)
	}
}

// Money that planning saves on an engine of one's own: computed tokens of sessions held out and not, at the settings' price.
func TestMoneyOfAnOwnEngine(t *testing.T) {
	l := newTenants(t, sidecar.Options{}, func(c *settings.Config) {
		c.HoldOut, c.Currency, c.Prices = .5, "XTS", []settings.Price{{Model: "*", Input: 2}}
	})
	for i := range 6 * savings.MinSessions {
		body := docsChat(fmt.Sprint("question ", i), passage(fmt.Sprint(i%5)), passage(fmt.Sprint((i+1)%5)), passage("always"))
		do(t, http.MethodPost, l.front.URL+"/v1/chat/completions", "", body, "X-ContextPilot-Session", fmt.Sprint("s", i))
	}
	s := parsed[report.Snapshot](t, do(t, http.MethodGet, l.admin.URL+"/figures", "", ""))
	if s.Money == nil || !s.Money.OK || s.Money.Samples != s.ComputedTokens.Samples {
		t.Fatalf("money %+v, tokens %+v", s.Money, s.ComputedTokens)
	}
	if want := s.ComputedTokens.Saved * 2e-6; s.Money.Saved-want > 1e-12 || want-s.Money.Saved > 1e-12 {
		t.Errorf("%v saved, want %v", s.Money.Saved, want)
	}
	if n := s.Totals.Planned.Requests + s.Totals.HeldOut.Requests; n != 6*savings.MinSessions || s.Totals.HeldOut.HitRatio == nil {
		t.Errorf("%+v", s.Totals)
	}
	d := parsed[dashboard.Data](t, do(t, http.MethodGet, l.admin.URL+"/ui/data.json", "", ""))
	if d.Saved.Money == nil || d.Saved.Money.PerRequest == nil || d.Saved.Money.Currency != "XTS" || d.Cloud != nil {
		t.Errorf("%+v", d.Saved.Money)
	}
}

// In shadow mode nothing is saved, and all that is said is said of what would have been done.
func TestShadowFigures(t *testing.T) {
	l := newTenants(t, sidecar.Options{}, func(c *settings.Config) {
		c.Shadow, c.HoldOut, c.Currency, c.Prices = true, .5, "XTS", []settings.Price{{Model: "*", Input: 2}}
	})
	for n := range 8 {
		body, err := json.Marshal(chatAgent(n + 1))
		if err != nil {
			t.Fatal(err)
		}
		for _, session := range []string{"a", "b", "c", "d", "e", "f"} { // some held out
			do(t, http.MethodPost, l.front.URL+"/v1/chat/completions", "", string(body), "X-ContextPilot-Session", session)
		}
	}
	s := parsed[report.Snapshot](t, do(t, http.MethodGet, l.admin.URL+"/figures", "", ""))
	if tt := s.Totals; tt.Shadow.Requests != 48 || tt.Planned.Requests+tt.HeldOut.Requests != 0 || tt.CharsSaved != 0 ||
		tt.WouldHave.LeftOut == 0 {
		t.Errorf("%+v", tt)
	}
	if s.TTFT.Samples != [2]int{} || s.Money.Samples != [2]int{} {
		t.Errorf("samples of what was not planned: %+v %+v", s.TTFT, s.Money)
	}
	d := parsed[dashboard.Data](t, do(t, http.MethodGet, l.admin.URL+"/ui/data.json", "", ""))
	if !d.Shadow || !strings.Contains(d.Notice, "would have been done") || d.Totals.CachedTokens != 0 || d.Totals.Shadow.LeftOut == 0 {
		t.Errorf("%q %+v", d.Notice, d.Totals)
	}
	for name, s := range map[string]dashboard.Saving{"tokens": d.Saved.Tokens, "seconds": d.Saved.Seconds, "money": *d.Saved.Money} {
		if s.PerRequest != nil || !strings.Contains(s.Why, "shadow mode") {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A cloud provider's index does not outlive the process: nobody knows how old its prompts are.
func TestRestartForgetsACloudsPrompts(t *testing.T) {
	cfg := settings.Default()
	cfg.StateDir = t.TempDir()
	cfg.InferAPIURL = newRecorder(t).URL
	count := func(cfg settings.Config, o sidecar.Options, asks int) int {
		api, err := sidecar.New(cfg, o)
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		mux := http.NewServeMux()
		api.Admin(mux)
		l := live{httptest.NewServer(api), httptest.NewServer(mux)}
		defer l.front.Close()
		defer l.admin.Close()
		for i := range asks {
			do(t, http.MethodPost, l.front.URL+"/v1/chat/completions", "", docsChat("q", passage("a"), passage(fmt.Sprint(i))))
		}
		live := 0
		for _, e := range parsed[dashboard.Data](t, do(t, http.MethodGet, l.admin.URL+"/ui/data.json", "", "")).Engines {
			live += *e.Live
		}
		return live
	}
	if n := count(cfg, sidecar.Options{}, 2); n != 2 {
		t.Fatalf("%d prompts", n)
	}
	if n := count(cfg, sidecar.Options{}, 0); n != 2 {
		t.Errorf("an engine's: %d prompts after the restart", n)
	}
	cfg.CloudProvider = "openai"
	if n := count(cfg, sidecar.Options{}, 0); n != 0 {
		t.Errorf("a cloud's: %d prompts after the restart", n)
	}
}

// The picture in a real browser, of live traffic.
func TestDashboardDrawsTheCache(t *testing.T) {
	l := newTenants(t, sidecar.Options{}, func(*settings.Config) {})
	ask := func(i int) {
		do(
			t,
			http.MethodPost,
			l.front.URL+"/v1/chat/completions",
			"red",
			docsChat(fmt.Sprint(i), passage("first"), passage("second"), passage(fmt.Sprint(i))),
		)
	}
	ask(0)
	_, wait := browse(t, l.admin.URL+"/ui/")
	wait(`document.querySelectorAll("#picture rect.alone").length === 3`)
	ask(1)
	ask(2)
	wait(`document.querySelectorAll("#picture rect.shared").length === 2 && document.querySelectorAll("#picture rect.alone").length === 3`)
	wait(`document.querySelector("#picture svg").getAttribute("aria-label").includes("in 3 of 3 prompts")`)
	wait(`document.querySelector("#engine-facts").textContent.includes("3 live prompts")`)
	wait(`parseFloat(document.querySelector("#engines tr").cells[4].textContent) > 0`)
}
