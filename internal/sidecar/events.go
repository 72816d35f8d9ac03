package sidecar

import (
	"context"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/cachewatch"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// tokenizerShare is which part of Limits.InFlightBytes bodies may take besides that are kept to ask a tokenizer.
const tokenizerShare = 8

// followCaches follows the engines' cache events, once [API.Run] runs. A provider has none.
func (a *assembly) followCaches() (err error) {
	if a.cfg.CloudProvider != "" {
		return nil
	}
	live, pilot, journal := a.Live, a.pilot, a.po.Journal
	a.events, err = cachewatch.New(cachewatch.Options{
		Engines: func() []cachewatch.Engine { return watched(live.Load().Engines) }, BaseURL: a.cfg.InferAPIURL, Log: a.log, Registry: a.Registry,
		MaxBytes: func() int64 { return live.Load().Limits.InFlightBytes / tokenizerShare },
		Lost:     func(scope contextpilot.Scope, id string) { a.proxy.Lost(scope, id) },
		Shrunk:   func(scope contextpilot.Scope, id string, tokens int) { a.proxy.Shrunk(scope, id, tokens) },
		Indexed:  func(tenant, id string) { a.index.Evicted(tenant, id) },
		Cleared:  func(models []string) { cleared(pilot, journal, models) },
		Left:     func(tenant, id string, tokens int) { a.misses.Evicted(tenant, tokens, id) },
		Emptied:  func(models []string) { a.misses.Emptied(models) },
	})
	if err == nil {
		a.po.Caches = a.events
	}
	return err
}

// watched returns engines as cachewatch takes them. Their sources were checked with the settings.
func watched(list []settings.Engine) []cachewatch.Engine {
	out := make([]cachewatch.Engine, len(list))
	for i, e := range list {
		sources, _ := e.Sources()
		out[i] = cachewatch.Engine{
			Name: e.Name, Kind: e.Kind, URL: e.URL, APIKey: e.APIKey.Reveal(), Models: e.Models, Sources: sources, Topic: e.Topic,
			BlockSize: e.BlockSize, PromptTokens: e.PromptTokens,
		}
	}
	return out
}

// cleared empties the index of all prompts to some models (none: all), whosever they are: their engines hold nothing. The
// journal, if there is one, notes it for the next restart.
func cleared(pilot *contextpilot.Pilot, journal proxy.Journal, models []string) {
	if journal != nil { // first: what is sent from now on is held
		journal.Cleared(models)
	}
	for _, scope := range pilot.Scopes() {
		if len(models) == 0 || slices.Contains(models, scope.Model) {
			pilot.Observe(contextpilot.Event{Kind: contextpilot.Cleared, Scope: scope})
		}
	}
}

// Run follows the engines' cache events until ctx ends, and asks the engine for its slots. Without it the API answers all the same.
func (a *API) Run(ctx context.Context) {
	var own sync.WaitGroup
	defer own.Wait()
	if a.slots != nil {
		own.Go(func() { a.slots.run(ctx) })
	}
	if a.events != nil {
		a.events.Run(ctx)
	}
}

// caches is what is known of the engines' cache events; nil: none are followed.
func (a *API) caches() *cachewatch.Snapshot {
	if a.events == nil {
		return nil
	}
	return a.events.Snapshot()
}
