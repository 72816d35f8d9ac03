package main

import (
	"context"
	"fmt"
	"io"

	"github.com/ragpilot/ragpilot/internal/lab/load"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// routes runs the arms.
type routes struct {
	flags  *routeFlags
	job    load.Job
	run    func(ctx context.Context, j load.Job, n int, arm load.Arm) (load.FleetRun, error)
	counts []int // of replicas
	engine string
}

func (f *routeFlags) run(ctx context.Context, out io.Writer, arrivals []load.Arrivals) error {
	arms, err := f.chosen()
	if err != nil {
		return err
	}
	r := &routes{flags: f}
	if r.job, err = f.job(); err != nil {
		return err
	}
	open := r.simulate
	if len(f.servers.urls) > 0 {
		open = r.drive
	}
	closeAll, err := open()
	if err != nil {
		return err
	}
	defer closeAll()
	var points []load.RoutePoint
	for _, n := range r.counts {
		for _, a := range arrivals {
			more, err := r.compare(ctx, n, a.Times(n), arms)
			if err != nil {
				return err
			}
			points = append(points, more...)
		}
	}
	if f.json {
		return encode(out, points)
	}
	return printRoutes(out, r.engine, points)
}

// simulate prepares runs in virtual time.
func (r *routes) simulate() (closeAll func(), err error) {
	model, err := load.ReadModel(r.flags.model)
	if err != nil {
		return nil, fmt.Errorf("--engine-model %w", err)
	}
	capacity, err := trace.CapacityTokens(r.flags.capacity, r.job.Trace, r.job.Blocks, r.job.Settings.History)
	if err != nil {
		return nil, fmt.Errorf("--capacity: %w", err)
	}
	cache := "unlimited caches"
	if capacity > 0 {
		cache = fmt.Sprintf("caches of %d tokens", capacity)
	}
	r.engine = fmt.Sprintf("simulators in virtual time, %s (%s), %s", model.Name, model.Origin, cache)
	r.counts = r.flags.replicas
	replies := load.Replies(r.job.Trace, r.job.MaxTokens)
	r.run = func(ctx context.Context, j load.Job, n int, arm load.Arm) (load.FleetRun, error) {
		return j.SimulateFleet(ctx, model.Servers(n, capacity, replies), arm.Routing, r.flags.router)
	}
	return func() {}, nil
}

// compare runs all arms with all seeds at one load on n replicas.
func (r *routes) compare(ctx context.Context, n int, a load.Arrivals, arms []load.Arm) ([]load.RoutePoint, error) {
	var out []load.RoutePoint
	var first []load.FleetRun
	for _, arm := range arms {
		runs := make([]load.FleetRun, r.flags.seeds)
		for seed := range runs {
			j := r.job
			j.Settings.Policy, j.Arrivals, j.Seed = arm.Policy, a, uint64(seed+1)
			var err error
			if runs[seed], err = r.run(ctx, j, n, arm); err != nil {
				return nil, fmt.Errorf("%s: %w", arm.Name, err)
			}
		}
		if first == nil {
			first = runs
		}
		p := load.SummariseRoutes(arm, runs, arms[0].Name, first)
		p.Engine, p.Simulated = r.engine, len(r.flags.servers.urls) == 0
		out = append(out, p)
	}
	return out, nil
}
