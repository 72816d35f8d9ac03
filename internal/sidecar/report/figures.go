package report

import (
	"encoding/json"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/sidecar/cachewatch"
	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/savings"
	"github.com/ragpilot/ragpilot/stabilise"
)

// Options configure Figures. Registry is required.
type Options struct {
	Registry prometheus.Registerer
	// Cost is what a request's prompt has cost; ok is false if that is not known. Nil: nothing has a price.
	Cost func(proxy.Report) (money float64, ok bool)
	// Currency is what Cost is in.
	Currency string
	// Provider has the accounts of a cloud provider's cache; nil: the engine is one's own.
	Provider *cloudcache.Provider
	// Caches returns what is known of engines' cache events; nil, or a nil answer: none are followed.
	Caches func() *cachewatch.Snapshot
}

// Figures is a proxy.Recorder. Memory is constant, but for one counter for each path that the proxy knows, and bounded
// by package gain. Safe for concurrent use.
type Figures struct {
	opt   Options
	count *counters
	meter savings.Meter

	mu    sync.Mutex
	total Totals
	share float64   // of sessions held out, to which the meter's samples belong
	since time.Time // when the first of them came
}

// Totals are sums since the start.
type Totals struct {
	Requests   int   `json:"requests"`
	Failed     int   `json:"failed"`
	CharsSaved int   `json:"chars_saved"` // that were not sent
	Planned    Group `json:"planned"`
	HeldOut    Group `json:"held_out"`
	Plain      Group `json:"plain"` // not to be touched: switched off by the client, or without messages
	Shadow     Group `json:"shadow"`
	// Stabilised is what rules of the stabiliser did; zero: none is on, or none had to.
	Stabilised stabilise.Stats `json:"stabilised,omitzero"`
	// WouldHave is what would have been done to the requests of shadow mode.
	WouldHave WouldHave `json:"would_have"`
}

// Group is what was done one way. Tokens are counted for requests whose answer named both.
type Group struct {
	Requests     int      `json:"requests"`
	Failed       int      `json:"failed"`
	PromptTokens int      `json:"prompt_tokens"`
	CachedTokens int      `json:"cached_tokens"`
	HitRatio     *float64 `json:"hit_ratio"` // cached of prompt tokens; nil: not reported
}

// WouldHave is what shadow mode found. None of it was done.
type WouldHave struct {
	LeftOut    int `json:"documents_left_out"`
	Replaced   int `json:"blocks_replaced"`
	CharsSaved int `json:"chars_saved"`
}

// New returns Figures whose metrics are entered into a registry.
func New(o Options) (*Figures, error) {
	c, err := newCounters(o)
	if err != nil {
		return nil, err
	}
	return &Figures{opt: o, count: c}, nil
}

// Answered takes one report in.
func (f *Figures) Answered(r proxy.Report) {
	counted := r.Prompt > 0 && r.Cached >= 0
	f.count.answered(&r, counted)
	f.mu.Lock()
	f.add(&r, counted)
	sampled := f.sampled(&r)
	f.mu.Unlock()
	if sampled {
		f.sample(&r, counted)
	}
}

// add adds a report to the sums. The lock is held.
func (f *Figures) add(r *proxy.Report, counted bool) {
	g := map[string]*Group{planned: &f.total.Planned, heldOut: &f.total.HeldOut, plain: &f.total.Plain, shadow: &f.total.Shadow}[groupOf(r)]
	f.total.Requests++
	g.Requests++
	if r.Failed {
		f.total.Failed++
		g.Failed++
	}
	if counted {
		g.PromptTokens += r.Prompt
		g.CachedTokens += r.Cached
	}
	if r.Shadow {
		w := &f.total.WouldHave
		w.LeftOut += r.LeftOut
		w.Replaced += r.Replaced
		w.CharsSaved += r.CharsSaved
		return
	}
	f.total.CharsSaved += r.CharsSaved
	if r.Planned {
		f.total.Stabilised = f.total.Stabilised.Sum(r.Stabilised)
	}
}

// sampled reports whether a report is a sample of what planning saves. Both groups must be alike but for the planning: only
// requests of sessions that could have been held out count, and none of another share than the present one, or of a session that
// began under another. The lock is held.
func (f *Figures) sampled(r *proxy.Report) bool {
	if r.Shadow || r.Carried || r.Session == "" || !r.Planned && !r.HeldOut {
		return false
	}
	if r.Share != f.share {
		if !r.At.After(f.since) {
			return false // it came before the share changed
		}
		f.share, f.since = r.Share, r.At
		f.meter.Reset()
	}
	return !r.Failed && f.share > 0 && !r.At.Before(f.since)
}

func (f *Figures) sample(r *proxy.Report, counted bool) {
	s := savings.Sample{
		Session: r.Tenant + "\x00" + r.Session, HeldOut: r.HeldOut, TTFT: r.TTFT.Seconds(), Computed: math.NaN(), Cost: math.NaN(),
	}
	if counted {
		s.Computed = float64(r.Prompt - r.Cached)
	}
	if f.opt.Cost != nil {
		if money, ok := f.opt.Cost(*r); ok {
			s.Cost = money
		}
	}
	f.meter.Add(s)
}

// Snapshot is what ServeHTTP answers.
type Snapshot struct {
	Totals         Totals         `json:"totals"`
	TTFT           savings.Figure `json:"saved_ttft_seconds"`
	ComputedTokens savings.Figure `json:"saved_computed_tokens"`
	// Money is what planning saves of the prompts' cost; nil without prices.
	Money    *savings.Figure `json:"saved_money,omitempty"`
	Currency string          `json:"currency,omitempty"`
	Cloud    *Cloud          `json:"cloud,omitempty"` // nil: the engine is one's own
	// Caches is how well the engines' cache events are followed; nil: they are not.
	Caches *cachewatch.Snapshot `json:"caches,omitempty"`
}

// Cloud is what a provider's cache has done. Its accounts' saved money is against the same prompts without a cache, in
// any layout; what planning adds is in Snapshot.
type Cloud struct {
	Provider string              `json:"provider"`
	Total    cloudcache.Account  `json:"total"`
	Tenants  []cloudcache.Tenant `json:"tenants"` // the 1,024 that were served last
}

// Snapshot returns the figures as they are now.
func (f *Figures) Snapshot() Snapshot {
	f.mu.Lock()
	t := f.total
	f.mu.Unlock()
	for _, g := range []*Group{&t.Planned, &t.HeldOut, &t.Plain, &t.Shadow} {
		if g.PromptTokens > 0 {
			g.HitRatio = new(float64(g.CachedTokens) / float64(g.PromptTokens))
		}
	}
	s := Snapshot{Totals: t, TTFT: f.meter.TTFT(), ComputedTokens: f.meter.Computed()}
	if f.opt.Cost != nil {
		s.Money, s.Currency = new(f.meter.Cost()), f.opt.Currency
	}
	if f.opt.Caches != nil {
		s.Caches = f.opt.Caches()
	}
	if p := f.opt.Provider; p != nil {
		s.Cloud = &Cloud{Provider: p.Name(), Total: p.Total().Account, Tenants: p.Tenants()}
	}
	return s
}

// ServeHTTP answers with the Snapshot as JSON; for the admin listener.
func (f *Figures) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(f.Snapshot())
}
