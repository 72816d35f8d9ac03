package report

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/metrics"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/stabilise"
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

// counters are those of requests. Labels have few values: none is a tenant, a model or a session.
type counters struct {
	requests *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	chars    prometheus.Counter
	would    prometheus.Counter
	ttft     *prometheus.HistogramVec
	rules    *prometheus.CounterVec
	texts    *prometheus.CounterVec
}

func newCounters(o Options) (*counters, error) {
	set := metrics.NewSet(o.Registry)
	c := &counters{
		requests: set.Counters("ragpilot_proxied_requests_total",
			"Requests forwarded with messages or a prompt, by whether their texts were planned, and how they ended.", "path", "group", "result"),
		tokens: set.Counters("ragpilot_prompt_tokens_total",
			"Prompt tokens as engines reported them: all (prompt), and those from the cache (cached).", "kind", "group"),
		chars: set.Counter("ragpilot_saved_characters_total",
			"Characters that were not sent because they stand further up in the same prompt."),
		would: set.Counter("ragpilot_shadow_characters_total",
			"Characters that would not have been sent, of requests in shadow mode. They were sent."),
		ttft: set.Histograms("ragpilot_ttft_seconds", "Time to the first byte of an answer.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2, 4, 8, 16, 32, 64}, "group"),
	}
	c.rules = set.Counters("ragpilot_stabiliser_total", "What rules of the stabiliser did: requests with tools in another order (tools), "+
		"definitions of tools with their members in another order (schemas), lines and memories that left system texts (volatile, memories).",
		"rule")
	c.texts = set.Counters("ragpilot_stabiliser_texts_total", "What the stabiliser did beside: texts that were sent again in earlier turns "+
		"(again), messages in which the form of its notes was fenced (fenced), and what it left as it came because it was not certain (kept).",
		"what")
	if o.Provider != nil {
		cloudMetrics(set, o.Provider)
	}
	if err := set.Err(); err != nil {
		return nil, fmt.Errorf("figures: %w", err)
	}
	return c, nil
}

func (c *counters) answered(r *proxy.Report, counted bool) {
	group, ending := groupOf(r), "ok"
	if r.Failed {
		ending = "failed"
	}
	c.requests.WithLabelValues(r.Path, group, ending).Inc()
	saved := c.chars
	if r.Shadow {
		saved = c.would
	}
	saved.Add(float64(max(r.CharsSaved, 0)))
	if group == planned {
		c.stabilised(&r.Stabilised)
	}
	if counted {
		c.tokens.WithLabelValues("prompt", group).Add(float64(r.Prompt))
		c.tokens.WithLabelValues("cached", group).Add(float64(r.Cached))
	}
	if !r.Failed {
		c.ttft.WithLabelValues(group).Observe(r.TTFT.Seconds())
	}
}

// cloudMetrics read a provider's account when they are asked for.
func (c *counters) stabilised(s *stabilise.Stats) {
	if *s == (stabilise.Stats{}) {
		return
	}
	for rule, n := range map[string]int64{"tools": s.Tools, "schemas": s.Schemas, "volatile": s.Volatile, "memories": s.Memories} {
		c.rules.WithLabelValues(rule).Add(float64(n))
	}
	for what, n := range map[string]int64{"again": s.Again, "fenced": s.Fenced, "kept": s.Kept} {
		c.texts.WithLabelValues(what).Add(float64(n))
	}
}

func cloudMetrics(set *metrics.Set, p *cloudcache.Provider) {
	for kind, of := range map[string]func(cloudcache.Account) int{
		"plain":      func(a cloudcache.Account) int { return a.Plain },
		"read":       func(a cloudcache.Account) int { return a.Read },
		"written":    func(a cloudcache.Account) int { return a.Written },
		"written-1h": func(a cloudcache.Account) int { return a.Long },
		"output":     func(a cloudcache.Account) int { return a.Output },
	} {
		metrics.Read(set, "ragpilot_cloud_tokens_total", "Tokens as the cloud provider reported them.",
			func() int { return of(p.Total().Account) }, "kind", kind)
	}
	a := p.Total().Account
	if a.Cost == nil {
		return
	}
	metrics.Read(set, "ragpilot_cloud_cost_total", "Money that requests to the cloud provider have cost, of those whose prices are known.",
		func() float64 { return *p.Total().Account.Cost }, "currency", a.Currency)
	metrics.Read(set, "ragpilot_cloud_saved",
		"Money that the provider's cache has saved against the same prompts without a cache; below 0 if writing to it cost more.",
		func() float64 { return *p.Total().Account.Saved }, "currency", a.Currency)
}
