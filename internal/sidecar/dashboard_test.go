package sidecar_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// live is a server with its admin side, in front of the simulated engine.
type live struct {
	front, admin *httptest.Server
}

func newLive(t *testing.T, change func(*settings.Config)) live {
	t.Helper()
	cfg := settings.Default()
	cfg.InferAPIURL = newRecorder(t).URL
	if change != nil {
		change(&cfg)
	}
	api, err := sidecar.New(cfg, sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	api.Admin(mux)
	l := live{httptest.NewServer(api), httptest.NewServer(mux)}
	t.Cleanup(func() { l.front.Close(); l.admin.Close() })
	return l
}

// The dashboard in a real browser, against a live server with traffic: what is asked appears without a reload, and a
// request shows its prompt before and after.
func TestDashboardShowsLiveTraffic(t *testing.T) {
	l := newLive(t, func(c *settings.Config) { c.KeepTexts = true })
	send := func(n int) {
		body, err := json.Marshal(chatAgent(n))
		if err != nil {
			t.Fatal(err)
		}
		ask(t, l.front.URL+"/v1/chat/completions", body)
	}
	send(1)
	ctx, wait := browse(t, l.admin.URL+"/ui/")
	wait(`document.querySelectorAll("#requests tr").length === 1`)
	for n := 2; n <= 3; n++ {
		send(n)
	}
	wait(`document.querySelectorAll("#requests tr").length === 3`)
	wait(`parseFloat(document.getElementById("hit-ratio").textContent) > 0`)
	if err := chromedp.Do(ctx, chromedp.Click("#requests tr:first-child a")); err != nil {
		t.Fatal(err)
	}
	wait(
		`location.hash.startsWith("#/requests/") && document.body.innerText.includes("[Duplicate content — identical to a previous ` +
			`tool result (call0).")`,
	)
}
