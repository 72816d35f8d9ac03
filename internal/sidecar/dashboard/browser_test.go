package dashboard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for what must happen. Nothing waits that long when all is well.
const patience = time.Minute

// tab is a page of the browser, with all that it asked for and complained of.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string

	mu      sync.Mutex
	asked   []string
	console []string
}

// open shows a handler's page in a new tab of 1280 × 800 pixels in UTC.
func open(browser context.Context, t *testing.T, h http.Handler, hash string) *tab {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	ctx, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, url: server.URL}
	p.do(chromedp.Do(ctx))
	var listeners sync.WaitGroup
	listen, deaf := context.WithCancel(ctx)
	console, requests := chromedp.Console(listen), chromedp.Events(listen, network.RequestWillBeSent)
	listeners.Go(func() {
		for m, err := range console {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.console = append(p.console, m.String()+" "+m.URL)
			p.mu.Unlock()
		}
	})
	listeners.Go(func() {
		for e, err := range requests {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.asked = append(p.asked, e.Request.URL)
			p.mu.Unlock()
		}
	})
	t.Cleanup(func() { deaf(); listeners.Wait() })
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	p.do(err)
	_, err = chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"})
	p.do(err)
	// A tab that was closed before may take the window's focus with it, however late. Without the focus nothing is :focus-visible.
	_, err = chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.do(err)
	p.media("prefers-color-scheme", "light")
	p.size(1280, 800)
	p.do(chromedp.Do(ctx, chromedp.Navigate(server.URL+"/ui/"+hash)))
	p.wait(`document.getElementById("state").textContent.startsWith("Updated")`)
	return p
}

func (p *tab) do(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// quiet checks that the page asked nobody else and that nothing went wrong in it.
func (p *tab) quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, url := range p.asked {
		if !strings.HasPrefix(url, p.url+"/ui/") && !strings.HasPrefix(url, "data:") {
			p.t.Errorf("asked for %s", url)
		}
	}
	if len(p.asked) < 5 {
		p.t.Errorf("asked for %d things only: %v", len(p.asked), p.asked)
	}
	for _, line := range p.console {
		p.t.Errorf("console: %s", line)
	}
}

func (p *tab) size(width, height int64) {
	p.t.Helper()
	p.do(chromedp.Do(p.ctx, chromedp.EmulateViewport(width, height)))
}

func (p *tab) media(feature, value string) {
	p.t.Helper()
	_, err := chromedp.Call(
		p.ctx,
		emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}},
	)
	p.do(err)
}

// key presses a key.
func (p *tab) key(key string) {
	p.t.Helper()
	p.do(chromedp.Do(p.ctx, chromedp.KeyEvent(key)))
}

// wait waits until an expression holds. It is evaluated again and again from here, as the page's policy lets nobody
// make functions of texts.
func (p *tab) wait(expression string) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !eval[bool](p, "Boolean("+expression+")"); <-tick.C {
		if time.Now().After(end) {
			p.t.Fatalf("did not happen: %s\n%s", expression, eval[string](p, "document.body.innerText"))
		}
	}
}

func (p *tab) text(id string) string {
	p.t.Helper()
	return eval[string](p, `document.getElementById("`+id+`").textContent`)
}

func eval[T any](p *tab, expression string, options ...chromedp.EvaluateOption) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}
