package sidecar

import (
	"fmt"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/report"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// money knows what prompts cost: a cloud provider's by its own usage, an engine's by what the settings say that computing
// costs.
type money struct {
	provider *cloudcache.Provider // nil: the engine is one's own
	rates    cloudcache.Rates
	currency string
	priced   bool
}

// PricesOf returns the prices of the settings by model, in which * stands for any text.
func PricesOf(cfg settings.Config) map[string]cloudcache.Price {
	prices := make(map[string]cloudcache.Price, len(cfg.Prices))
	for _, p := range cfg.Prices {
		prices[p.Model] = cloudcache.Price{
			Input: p.Input, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite, CacheWrite1h: p.CacheWrite1h, Output: p.Output,
		}
	}
	return prices
}

// newMoney makes the provider of the settings, if they name one, with so many entries. base replaces its address; nil: its
// own.
func newMoney(cfg settings.Config, base *url.URL, entries int) (m money, err error) {
	prices := PricesOf(cfg)
	m.currency, m.priced = cfg.Currency, len(prices) > 0
	if cfg.CloudProvider == "" {
		m.rates = cloudcache.NewRates(prices)
		return m, nil
	}
	if base == nil && cfg.CloudBaseURL != "" {
		if base, err = url.Parse(cfg.CloudBaseURL); err != nil {
			return m, fmt.Errorf("cloud_base_url: %w", err)
		}
	}
	m.provider, err = cloudcache.New(cloudcache.Options{
		Provider: cfg.CloudProvider, Key: cfg.CloudAPIKey.Reveal(), Extended: cfg.ExtendedCache, Base: base, Prices: prices,
		Currency: cfg.Currency, MaxEntries: entries,
	})
	return m, err
}

// figures are the options of the figures: what things cost.
func (m money) figures(reg prometheus.Registerer) report.Options {
	o := report.Options{Registry: reg, Currency: m.currency, Provider: m.provider}
	if m.priced {
		o.Cost = m.prompt
	}
	return o
}

// prompt is what a request's prompt has cost.
func (m money) prompt(r proxy.Report) (float64, bool) {
	if m.provider != nil {
		r.Usage.Output = 0 // the length of the answer does not depend on what is done here
		return m.provider.Cost(r.Model, r.Usage)
	}
	price, ok := m.rates.Of(r.Model)
	if !ok || r.Prompt < 0 || r.Cached < 0 {
		return 0, false
	}
	return price.Prompt(max(r.Prompt-r.Cached, 0), r.Cached), true
}

// lost is what tokens of a model cost more that were computed and not read from the cache.
func (m money) lost(model string, tokens int) (float64, bool) {
	if m.provider != nil {
		computed, ok := m.provider.Cost(model, cloudcache.Usage{Prompt: tokens})
		read, known := m.provider.Cost(model, m.provider.Read(tokens))
		return max(computed-read, 0), ok && known
	}
	price, ok := m.rates.Of(model)
	return max(price.Prompt(tokens, 0)-price.Prompt(0, tokens), 0), ok
}
