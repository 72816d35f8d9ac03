package sidecar

import (
	"context"
	"fmt"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
)

// lastSpans is how long Close waits for a collector. A server has flushed the tracer before.
const lastSpans = time.Second

// trace opens the tracer that the configuration tells of.
func (a *API) trace(cfg settings.Trace, o Options) (*tracing.Tracer, error) {
	if o.Tracer != nil {
		return o.Tracer, nil
	}
	headers, err := tracing.ParseHeaders(cfg.Headers.Reveal())
	if err != nil && cfg.Endpoint != "" {
		return nil, fmt.Errorf("trace.headers: %w", err)
	}
	t, err := tracing.Open(context.Background(), tracing.Options{
		Endpoint: cfg.Endpoint, Headers: headers, Sample: cfg.Sample, Version: o.Version, Log: o.Log, Registry: o.Registry,
	})
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
		defer cancel()
		_ = t.Close(ctx) // what is lost is counted and logged there
		return nil
	})
	return t, nil
}

// Tracer makes the spans of requests; nil: nobody wants any. For the server around the API.
func (a *API) Tracer() *tracing.Tracer { return a.tracer }
