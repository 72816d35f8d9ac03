package sidecar

import (
	"cmp"
	"net/url"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/cachewatch"
	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/diagnosis"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/report"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// board gives the dashboard what it shows, and the figures their reports. Safe for concurrent use.
type board struct {
	*dashboard.Recent
	figures *report.Figures
	live    *settings.Live
	pilot   *contextpilot.Pilot
	engine  string
	misses  *diagnosis.Misses // nil: prompts are not compared
	expire  func()            // takes out of the index what the engine does not hold any more
}

// newBoard makes a board that keeps so many bytes of each text.
func newBoard(cfg settings.Config, text int, live *settings.Live, pilot *contextpilot.Pilot, numbers *report.Figures) *board {
	return &board{
		Recent: dashboard.NewRecent(dashboard.Options{TextBytes: text}), figures: numbers, live: live, pilot: pilot,
		engine: cmp.Or(cfg.CloudProvider, host(cfg.InferAPIURL)), expire: func() {},
	}
}

// Answered takes one report in.
func (b *board) Answered(r proxy.Report) {
	b.figures.Answered(r)
	d := dashboard.Detail{Request: dashboard.Request{
		ID: r.ID, At: r.At, Tenant: r.Tenant, Session: r.Session, Path: r.Path, Model: r.Model,
		HeldOut: r.HeldOut, Shadow: r.Shadow, Failed: r.Failed,
		Documents: r.Documents, LeftOut: r.LeftOut, Replaced: r.Replaced, CharsSaved: r.CharsSaved,
		PromptTokens: known(r.Prompt), CachedTokens: known(r.Cached), Predicted: known(r.Predicted), Total: r.Total.Seconds(),
	}}
	if r.Scope != nil && !r.HeldOut {
		d.Engine = engineID(*r.Scope)
	}
	if !r.Failed {
		ttft := r.TTFT.Seconds()
		d.TTFT = &ttft
	}
	for _, o := range r.Orders {
		d.Orders = append(d.Orders, dashboard.Order{Where: o.Where, Sent: o.Sent})
		for to, from := range o.Sent {
			if to != from {
				d.Reordered++
			}
		}
	}
	d.Stages = []dashboard.Stage{{Name: "planning", Seconds: r.Planning.Seconds()}}
	if !r.Failed {
		d.Stages = append(d.Stages, dashboard.Stage{Name: "first byte", Seconds: (r.TTFT - r.Planning).Seconds()},
			dashboard.Stage{Name: "the rest", Seconds: max(r.Total-r.TTFT, time.Duration(0)).Seconds()})
	}
	if r.Before != nil {
		d.Before = &dashboard.Text{Text: dashboard.Prompt(r.Before), Bytes: len(r.Before)}
		d.After = &dashboard.Text{Text: dashboard.Prompt(r.After), Bytes: len(r.After)}
	}
	b.Add(d)
}

func known(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

// Data is what the dashboard shows.
func (b *board) Data() dashboard.Data {
	b.expire()
	d := b.Recent.Data()
	now := b.figures.Snapshot()
	d.Saved.Tokens, d.Saved.Seconds = dashboard.Measured(now.ComputedTokens), dashboard.Measured(now.TTFT)
	if now.Money != nil {
		d.Saved.Money = dashboard.Priced(*now.Money, now.Currency)
	}
	if now.Cloud != nil {
		d.Cloud = cloud(now.Cloud)
	}
	if b.live.Load().Shadow {
		const none = "shadow mode: requests are sent as they came, so that nothing is saved"
		d.Shadow, d.Notice = true, "Shadow mode: requests are planned and sent as they came. What is said of them would have been done."
		d.Saved.Tokens, d.Saved.Seconds = dashboard.Saving{Why: none}, dashboard.Saving{Why: none}
		if d.Saved.Money != nil {
			d.Saved.Money = &dashboard.Saving{Why: none}
		}
	}
	d.Engines, d.Feeds, d.Misses = b.engines(), feeds(now.Caches), b.misses.Data()
	return d
}

// feeds are the streams of cache events as the dashboard shows them.
func feeds(c *cachewatch.Snapshot) []dashboard.Feed {
	if c == nil {
		return nil
	}
	out := make([]dashboard.Feed, len(c.Sources))
	for i, s := range c.Sources {
		f := dashboard.Feed{
			Source: s.Source, Topic: s.Topic, Connected: s.Connected, Complete: s.Complete, Events: s.Events, Holes: s.Holes,
			Problem: cmp.Or(s.Hint, s.Error),
		}
		if n := len(s.Windows); !s.Complete && n > 0 {
			f.Since, f.Cause = &s.Windows[n-1].From, s.Windows[n-1].Cause
		}
		out[i] = f
	}
	return out
}

// shownTenants is how many tenants' accounts the dashboard lists; /figures has all.
const shownTenants = 50

// cloud is a provider's accounts as the dashboard shows them.
func cloud(c *report.Cloud) *dashboard.Cloud {
	out := &dashboard.Cloud{Provider: c.Provider, Currency: c.Total.Currency, Total: account("", c.Total)}
	for _, t := range c.Tenants[:min(len(c.Tenants), shownTenants)] {
		out.Tenants = append(out.Tenants, account(t.Name, t.Account))
	}
	return out
}

func account(tenant string, a cloudcache.Account) dashboard.Account {
	return dashboard.Account{
		Tenant: tenant, Answers: a.Requests, Plain: a.Plain, Read: a.Read, Written: a.Written + a.Long, Output: a.Output,
		Cost: a.Cost, Saved: a.Saved,
	}
}

// host returns the host of an address, without what else it may hold.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "engine"
	}
	return u.Host
}
