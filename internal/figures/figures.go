// Package figures turns the proxy's reports into metrics and into the figures that people ask for: how much of the
// prompts the engine had cached, how long answers took to begin, and what planning saves, measured against sessions
// that are held out (package gain).
package figures

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/gain"
	"github.com/ragpilot/ragpilot/internal/proxy"
)

// Figures is a proxy.Recorder. Memory is constant, but for one counter for each path that the proxy knows. Safe for
// concurrent use.
type Figures struct {
	requests *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	chars    prometheus.Counter
	ttft     *prometheus.HistogramVec
	meter    gain.Meter

	mu    sync.Mutex
	total Totals
}

// Totals are sums since the start. Tokens are counted for requests whose answer named both.
type Totals struct {
	Requests     int     `json:"requests"`
	Failed       int     `json:"failed"`
	HeldOut      int     `json:"held_out"`
	PromptTokens int     `json:"prompt_tokens"`
	CachedTokens int     `json:"cached_tokens"`
	CharsSaved   int     `json:"chars_saved"`
	HitRatio     float64 `json:"hit_ratio"` // cached of prompt tokens
}

// New returns Figures whose metrics are entered into a registry.
func New(reg prometheus.Registerer) (*Figures, error) {
	f := &Figures{
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
		ttft: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ragpilot_ttft_seconds",
			Help:    "Time to the first byte of an answer.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2, 4, 8, 16, 32, 64},
		}, []string{"group"}),
	}
	for _, c := range []prometheus.Collector{f.requests, f.tokens, f.chars, f.ttft} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("figures: %w", err)
		}
	}
	return f, nil
}

// Answered takes one report in.
func (f *Figures) Answered(r proxy.Report) {
	group := "plain"
	switch {
	case r.HeldOut:
		group = "held-out"
	case r.Planned:
		group = "planned"
	}
	ending := "ok"
	if r.Failed {
		ending = "failed"
	}
	f.requests.WithLabelValues(r.Path, group, ending).Inc()
	f.chars.Add(float64(max(r.CharsSaved, 0)))
	counted := r.Prompt > 0 && r.Cached >= 0
	if counted {
		f.tokens.WithLabelValues("prompt", group).Add(float64(r.Prompt))
		f.tokens.WithLabelValues("cached", group).Add(float64(r.Cached))
	}
	if !r.Failed {
		f.ttft.WithLabelValues(group).Observe(r.TTFT.Seconds())
		f.sample(r, counted)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total.Requests++
	f.total.CharsSaved += r.CharsSaved
	if r.Failed {
		f.total.Failed++
	}
	if r.HeldOut {
		f.total.HeldOut++
	}
	if counted {
		f.total.PromptTokens += r.Prompt
		f.total.CachedTokens += r.Cached
	}
}

func (f *Figures) sample(r proxy.Report, counted bool) {
	if !r.Planned && !r.HeldOut {
		return
	}
	s := gain.Sample{HeldOut: r.HeldOut, TTFT: r.TTFT.Seconds(), Computed: math.NaN()}
	if counted {
		s.Computed = float64(r.Prompt - r.Cached)
	}
	f.meter.Add(s)
}

// Snapshot is what ServeHTTP answers.
type Snapshot struct {
	Totals         Totals      `json:"totals"`
	TTFT           gain.Figure `json:"saved_ttft_seconds"`
	ComputedTokens gain.Figure `json:"saved_computed_tokens"`
}

// Snapshot returns the figures as they are now.
func (f *Figures) Snapshot() Snapshot {
	f.mu.Lock()
	t := f.total
	f.mu.Unlock()
	if t.PromptTokens > 0 {
		t.HitRatio = float64(t.CachedTokens) / float64(t.PromptTokens)
	}
	return Snapshot{Totals: t, TTFT: f.meter.TTFT(), ComputedTokens: f.meter.Computed()}
}

// ServeHTTP answers with the Snapshot as JSON; for the admin listener.
func (f *Figures) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(f.Snapshot())
}
