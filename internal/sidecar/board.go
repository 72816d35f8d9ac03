package sidecar

import (
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/figures"
	"github.com/ragpilot/ragpilot/internal/proxy"
	"github.com/ragpilot/ragpilot/internal/serve"
	"github.com/ragpilot/ragpilot/internal/ui"
)

// keptText bounds one text that the dashboard shows, in bytes.
const keptText = 64 << 10

// board gives the dashboard what it shows, and the figures their reports. Safe for concurrent use.
type board struct {
	*ui.Recent
	figures *figures.Figures
	live    *serve.Live
	pilot   *contextpilot.Pilot
	engine  string
}

func newBoard(cfg serve.Config, live *serve.Live, pilot *contextpilot.Pilot, numbers *figures.Figures) *board {
	o := ui.Options{}
	if cfg.KeepTexts {
		o.TextBytes = keptText
	}
	b := &board{Recent: ui.NewRecent(o), figures: numbers, live: live, pilot: pilot, engine: cfg.CloudProvider}
	if b.engine == "" {
		b.engine = host(cfg.InferAPIURL)
	}
	return b
}

// Answered takes one report in.
func (b *board) Answered(r proxy.Report) {
	b.figures.Answered(r)
	d := ui.Detail{Request: ui.Request{
		ID: r.ID, At: r.At, Tenant: r.Tenant, Session: r.Session, Path: r.Path, Model: r.Model, HeldOut: r.HeldOut, Failed: r.Failed,
		Documents: r.Documents, LeftOut: r.LeftOut, Replaced: r.Replaced, CharsSaved: r.CharsSaved,
		PromptTokens: told(r.Prompt), CachedTokens: told(r.Cached), Predicted: told(r.Predicted), Total: r.Total.Seconds(),
	}}
	if !r.Failed {
		ttft := r.TTFT.Seconds()
		d.TTFT = &ttft
	}
	for _, o := range r.Orders {
		d.Orders = append(d.Orders, ui.Order{Where: o.Where, Sent: o.Sent})
		for to, from := range o.Sent {
			if to != from {
				d.Reordered++
			}
		}
	}
	d.Stages = []ui.Stage{{Name: "planning", Seconds: r.Planning.Seconds()}}
	if !r.Failed {
		d.Stages = append(d.Stages, ui.Stage{Name: "first byte", Seconds: (r.TTFT - r.Planning).Seconds()},
			ui.Stage{Name: "the rest", Seconds: max(r.Total-r.TTFT, time.Duration(0)).Seconds()})
	}
	if r.Before != nil {
		d.Before = &ui.Text{Text: ui.Prompt(r.Before), Bytes: len(r.Before)}
		d.After = &ui.Text{Text: ui.Prompt(r.After), Bytes: len(r.After)}
	}
	b.Add(d)
}

func told(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

// Data is what the dashboard shows.
func (b *board) Data() ui.Data {
	d := b.Recent.Data()
	now := b.figures.Snapshot()
	d.Saved.Tokens, d.Saved.Seconds = ui.Measured(now.ComputedTokens), ui.Measured(now.TTFT)
	d.Saved.Money = ui.Priced(d.Saved.Tokens, 0, "")
	if b.live.Load().Shadow {
		d.Notice = "Shadow mode: requests are planned and forwarded as they came."
	}
	st := b.pilot.Stats()
	tokens, live := int(st.IndexTokens), int(st.LiveRequests)
	e := ui.Engine{Name: b.engine, Tokens: &tokens, Live: &live}
	d.Engines = []ui.Engine{e}
	return d
}

// host returns the host of an address, without what else it may hold.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "engine"
	}
	return u.Host
}

// ownHost refuses requests that a page elsewhere could make a browser send, by a name of its own for this address (DNS
// rebinding): the dashboard may show prompts.
func ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Host
		if h, _, err := net.SplitHostPort(name); err == nil {
			name = h
		}
		if name != "localhost" && net.ParseIP(name) == nil {
			http.Error(w, "open the dashboard by its IP address or as localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
