package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/base/holdback"
	"github.com/ragpilot/ragpilot/internal/sidecar/metrics"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// makeHold makes what holds prompts back while another one computes their beginning.
func (a *assembly) makeHold() (err error) {
	h := a.cfg.Hold
	o := holdback.Options{Tokens: h.Tokens, Longest: h.Longest}
	switch {
	case h.Until == settings.HoldOff, a.po.Provider != nil: // a provider has more than one machine
		return nil
	case h.Until == settings.HoldAnswer, h.Until == settings.HoldAuto:
		if a.slots, err = newSlots(a.cfg, h.Until); err != nil {
			return err
		}
		a.closers = append(a.closers, a.slots.close)
		o.Slots = a.slots.count
	}
	if a.po.Hold, err = holdback.New(o); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	holdMetrics(a.set, a.po.Hold.Stats)
	return a.set.Err()
}

// holdMetrics are about prompts that were held back.
func holdMetrics(set *metrics.Set, stats func() holdback.Stats) {
	for end, n := range map[string]func(holdback.Stats) int64{
		"served": func(s holdback.Stats) int64 { return s.Served },
		"late":   func(s holdback.Stats) int64 { return s.Late },
		"gone":   func(s holdback.Stats) int64 { return s.Gone + s.Reset },
	} {
		metrics.Read(set, "ragpilot_held_requests_total",
			"Requests that were held back while another one computed the same prefix, by how that ended: served went on because the other one "+
				"had ended, or because waiting would have taken longer than computing, late because a bound was reached, and of gone the client "+
				"has left.",
			func() int64 { return n(stats()) }, "end", end)
	}
	metrics.Read(set, "ragpilot_held_seconds_total", "How long requests were held back, all together.",
		func() float64 { return stats().Waited.Seconds() })
	metrics.Read(set, "ragpilot_held_requests", "Requests that are held back now.", func() int { return stats().Waiting })
}

// slots knows how many slots a llama.cpp server has. Before the engine has answered, and for other engines, it has none.
type slots struct {
	engine *llamacpp.Engine
	known  atomic.Int64
}

// askAgain is how long an engine that cannot be reached, or is not ready, is left alone.
const askAgain = 10 * time.Second

// newSlots returns slots of the engine at InferAPIURL. until says what is held for: with answer the engine has slots whatever it says.
func newSlots(cfg settings.Config, until string) (*slots, error) {
	e, err := llamacpp.New(llamacpp.Config{Server: openai.Config{BaseURL: cfg.InferAPIURL, APIKey: cfg.InferAPIKey.Reveal()}})
	if err != nil {
		return nil, fmt.Errorf("infer_api_url: %w", err)
	}
	s := &slots{engine: e}
	if until == settings.HoldAnswer {
		s.known.Store(int64(e.UnsharedSlots()))
	}
	return s, nil
}

func (s *slots) count() int   { return int(s.known.Load()) }
func (s *slots) close() error { return s.engine.Close() }

// run asks the engine what it is until it has answered. One that is no llama.cpp server is not asked again.
func (s *slots) run(ctx context.Context) {
	for {
		info, err := s.engine.Info(ctx)
		status, _ := errors.AsType[*openai.StatusError](err)
		switch {
		case err == nil:
			s.known.Store(int64(info.Slots))
			return
		case status != nil && status.Code >= http.StatusInternalServerError && status.Code != http.StatusNotImplemented:
			// It loads its model, or a proxy in front of it waits for it.
		case !errors.Is(err, engines.ErrUnreachable) && !errors.Is(err, engines.ErrInterrupted):
			return
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return
		}
	}
}
