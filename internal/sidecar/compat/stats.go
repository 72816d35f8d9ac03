package compat

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// maxTimes is how many times to the first token are kept.
const maxTimes = 10_000

func (a *API) now() float64 { return float64(a.opt.Now().UnixMicro()) / 1e6 }

// root is GET /.
func (a *API) root(r *http.Request) (any, error) {
	mode := "live"
	if a.opt.Stateless {
		mode = "stateless"
	}
	return rootAnswer{
		Service: "ContextPilot Live Index Server", Status: "running", Mode: mode,
		IndexInitialized: a.HasIndex(tenant.From(r.Context())), Timestamp: a.now(),
	}, nil
}

// health is GET /health.
func (a *API) health(r *http.Request) (any, error) {
	if a.opt.Stateless {
		return healthStateless{
			Status: "ready", Mode: "stateless", Timestamp: a.now(),
			Message: "Stateless mode: clustering and scheduling only, no cache tracking",
		}, nil
	}
	st, err := a.indexStats(r)
	if err != nil {
		return nil, &failure{http.StatusServiceUnavailable, healthNotReady{
			Status: "not_ready", Message: "Index not initialized. Call POST /reorder first.",
		}}
	}
	out := healthLive{Status: "ready", Mode: "live", EvictionEnabled: true, CurrentTokens: st.TotalTokens, IndexStats: st, Timestamp: a.now()}
	if n := a.opt.MaxTokens; n > 0 {
		out.MaxTokens, out.UtilizationPct = &n, 100*float64(st.TotalTokens)/float64(n)
	}
	return out, nil
}

// stats is GET /stats.
func (a *API) stats(r *http.Request) (any, error) {
	st, err := a.indexStats(r)
	return statsAnswer{Status: "success", IndexStats: st, Timestamp: a.now()}, err
}

func (a *API) indexStats(r *http.Request) (st indexStats, err error) {
	_, err = a.withIndex(r, func(s *state) (any, error) {
		st = newIndexStats(s.live.index.Stats())
		return nil, nil
	})
	return st, err
}

// requests is GET /requests.
func (a *API) requests(r *http.Request) (any, error) {
	return a.withIndex(r, func(s *state) (any, error) {
		ids := s.live.index.Requests()
		return requestsAnswer{Status: "success", NumRequests: len(ids), RequestIDs: ids}, nil
	})
}

// ttft is GET /metrics/ttft.
func (a *API) ttft(r *http.Request) (any, error) {
	last := int64(0)
	if word := r.URL.Query()["last"]; len(word) > 0 {
		raw, _ := json.Marshal(word[len(word)-1])
		n := wholeNumber(value{kind: kindText, raw: raw})
		if n.msg != "" {
			return nil, invalid(problem{Type: n.kind, Loc: []any{"query", "last"}, Msg: n.msg, Input: raw})
		}
		last = n.n
	}
	return a.look(tenant.From(r.Context())).ttft(last), nil
}

func (s *state) ttft(last int64) ttftAnswer {
	s.Lock()
	defer s.Unlock()
	times := slices.Concat(s.times[s.oldest:], s.times[:s.oldest])
	if last > 0 && last < int64(len(times)) {
		times = times[int64(len(times))-last:]
	}
	out := ttftAnswer{TTFTMs: times, Count: len(times), TotalCharsSaved: s.chars}
	if times == nil {
		out.TTFTMs = []float64{}
	}
	for _, t := range times {
		out.AvgMs += t / float64(len(times))
	}
	out.AvgMs = math.Round(out.AvgMs*100) / 100
	return out
}

func (s *state) addTTFT(d time.Duration, chars int) {
	s.Lock()
	defer s.Unlock()
	s.chars += chars
	ms := float64(d.Nanoseconds()) / 1e6
	if len(s.times) < maxTimes {
		s.times = append(s.times, ms)
		return
	}
	s.times[s.oldest] = ms
	s.oldest = (s.oldest + 1) % maxTimes
}

// resetTTFT is POST /metrics/ttft/reset.
func (a *API) resetTTFT(r *http.Request) (any, error) {
	s := a.look(tenant.From(r.Context()))
	s.Lock()
	defer s.Unlock()
	s.times, s.oldest, s.chars = nil, 0, 0
	return statusAnswer{Status: "ok"}, nil
}
