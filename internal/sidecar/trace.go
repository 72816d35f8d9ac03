package sidecar

import (
	"context"
	"fmt"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
)

// lastSpans is how long Close waits for a collector. A server has flushed the tracer before.
const lastSpans = time.Second

// openTracer opens the tracer of the configuration.
func (a *assembly) openTracer() error {
	if a.tracer = a.Options.Tracer; a.tracer != nil {
		return nil
	}
	cfg := a.cfg.Trace
	headers, err := tracing.ParseHeaders(cfg.Headers.Reveal())
	if err != nil && cfg.Endpoint != "" {
		return fmt.Errorf("trace.headers: %w", err)
	}
	t, err := tracing.Open(context.Background(), tracing.Options{
		Endpoint: cfg.Endpoint, Headers: headers, Sample: cfg.Sample, Version: a.Version, Log: a.log, Registry: a.Registry,
	})
	if err != nil {
		return err
	}
	a.tracer = t
	a.closers = append(a.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
		defer cancel()
		_ = t.Close(ctx) // what is lost is counted and logged there
		return nil
	})
	return nil
}

// Tracer makes the spans of requests; nil: none are made. For the server around the API.
func (a *API) Tracer() *tracing.Tracer { return a.tracer }
