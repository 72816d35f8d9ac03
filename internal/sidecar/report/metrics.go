package report

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// Groups of requests.
const (
	planned = "planned"
	heldOut = "held-out"
	plain   = "plain"
	shadow  = "shadow"
)

// groupOf names the group of a request. In shadow mode all are forwarded as they came, held out or not.
func groupOf(r *proxy.Report) string {
	switch {
	case r.Shadow:
		return shadow
	case r.HeldOut:
		return heldOut
	case r.Planned:
		return planned
	default:
		return plain
	}
}

// metrics are those of requests. Labels have few values: none is a tenant, a model or a session.
type metrics struct {
	requests *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	chars    prometheus.Counter
	would    prometheus.Counter
	ttft     *prometheus.HistogramVec
}

func newMetrics() metrics {
	return metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ragpilot_proxied_requests_total",
			Help: "Requests forwarded with messages or a prompt, by whether their texts were planned, and how they ended.",
		}, []string{"path", "group", "result"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ragpilot_prompt_tokens_total",
			Help: "Prompt tokens as engines reported them: all (prompt), and those from the cache (cached).",
		}, []string{"kind", "group"}),
		chars: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ragpilot_saved_characters_total",
			Help: "Characters that were not sent because they stand further up in the same prompt.",
		}),
		would: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ragpilot_shadow_characters_total",
			Help: "Characters that would not have been sent, of requests in shadow mode. They were sent.",
		}),
		ttft: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ragpilot_ttft_seconds",
			Help:    "Time to the first byte of an answer.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2, 4, 8, 16, 32, 64},
		}, []string{"group"}),
	}
}

func (m *metrics) answered(r *proxy.Report, counted bool) {
	group, ending := groupOf(r), "ok"
	if r.Failed {
		ending = "failed"
	}
	m.requests.WithLabelValues(r.Path, group, ending).Inc()
	saved := m.chars
	if r.Shadow {
		saved = m.would
	}
	saved.Add(float64(max(r.CharsSaved, 0)))
	if counted {
		m.tokens.WithLabelValues("prompt", group).Add(float64(r.Prompt))
		m.tokens.WithLabelValues("cached", group).Add(float64(r.Cached))
	}
	if !r.Failed {
		m.ttft.WithLabelValues(group).Observe(r.TTFT.Seconds())
	}
}

func (m *metrics) enter(o Options) error {
	all := []prometheus.Collector{m.requests, m.tokens, m.chars, m.would, m.ttft}
	if o.Provider != nil {
		all = append(all, cloudMetrics(o.Provider)...)
	}
	for _, c := range all {
		if err := o.Registry.Register(c); err != nil {
			return fmt.Errorf("figures: %w", err)
		}
	}
	return nil
}

// cloudMetrics read a provider's account when they are asked for.
func cloudMetrics(p *cloudcache.Provider) []prometheus.Collector {
	const name, help = "ragpilot_cloud_tokens_total", "Tokens as the cloud provider reported them."
	var all []prometheus.Collector
	for kind, of := range map[string]func(cloudcache.Account) int{
		"plain":      func(a cloudcache.Account) int { return a.Plain },
		"read":       func(a cloudcache.Account) int { return a.Read },
		"written":    func(a cloudcache.Account) int { return a.Written },
		"written-1h": func(a cloudcache.Account) int { return a.Long },
		"output":     func(a cloudcache.Account) int { return a.Output },
	} {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: name, Help: help, ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return float64(of(p.Total().Account)) }))
	}
	a := p.Total().Account
	if a.Cost == nil {
		return all
	}
	currency := prometheus.Labels{"currency": a.Currency}
	return append(all,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "ragpilot_cloud_cost_total", ConstLabels: currency,
			Help: "Money that requests to the cloud provider have cost, of those whose prices are known.",
		}, func() float64 { return *p.Total().Account.Cost }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ragpilot_cloud_saved", ConstLabels: currency,
			Help: "Money that the provider's cache has saved against the same prompts without a cache; below 0 if writing to it cost more.",
		}, func() float64 { return *p.Total().Account.Saved }))
}
