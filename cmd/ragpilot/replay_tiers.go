package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/load"
)

// tierFlags are the flags of replay about the tiers of a simulated engine, the order of its requests, and workloads without text.
type tierFlags struct {
	orders, tiers      []string
	page, inFlight     int
	workload, distance string
	warm               bool

	setups   []load.Setup
	contexts load.Contexts
	asked    bool // an order or tiers are
}

func (f *tierFlags) register(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.orders, "order", []string{"fifo"},
		"under load: `ORDERS` in which the simulated engine admits requests: fifo, strata, or lpm, defer, balance, bubble joined by +")
	flags.StringSliceVar(&f.tiers, "tiers", []string{"none"},
		"under load: `WAYS` to copy between the simulated engine's memory and its host's, to compare: none, dma, gpu")
	flags.IntVar(&f.page, "page", 0, "under load: `TOKENS` of a page of the simulated engine's cache (0: the engine model's)")
	flags.IntVar(&f.inFlight, "in-flight", 0, "under load: `N` requests that are under way at a time at most; others wait (0: no limit)")
	flags.StringVar(&f.workload, "workload", "",
		"under load: replay a `WORKLOAD` without text instead of a trace: loogle, narrativeqa, reviewmt, sharegpt")
	flags.StringVar(&f.distance, "distance", "shuffled",
		"of --workload: `shuffled|minimal|maximal` distance of requests about the same context")
	flags.BoolVar(&f.warm, "warm", false, "of --workload: the host's memory holds all contexts at the beginning")
}

// used reports whether the output is about tiers and orders.
func (f *tierFlags) used() bool { return f.asked || f.workload != "" }

// check reads the flags, or returns an error that names the wrong one.
func (f *tierFlags) check(flags *pflag.FlagSet) error {
	if err := checkLimits(limited{"page", f.page, 0}, limited{"in-flight", f.inFlight, 0}); err != nil {
		return err
	}
	if len(f.tiers) == 0 || len(f.orders) == 0 {
		return fmt.Errorf("--tiers %q, --order %q: want at least one of each", f.tiers, f.orders)
	}
	for _, tiers := range f.tiers {
		switch load.Copying(tiers) {
		case load.NoTiers, load.DMA, load.GPU:
		default:
			return fmt.Errorf("--tiers %q: want none, dma or gpu", tiers)
		}
		for _, text := range f.orders {
			order, err := sim.ParseOrder(text)
			if err != nil {
				return fmt.Errorf("--order %w", err)
			}
			f.setups = append(f.setups, load.Setup{Page: f.page, Copying: load.Copying(tiers), Order: order})
		}
	}
	f.asked = flags.Changed("order") || flags.Changed("tiers")
	if f.workload == "" {
		return refuse(flags, "only with --workload", "distance", "warm")
	}
	if err := refuse(flags, "not with --workload, which has neither text nor plans", "trace", "blocks", "policy", "sessions",
		"max-tokens", "k"); err != nil {
		return err
	}
	var err error
	if f.contexts, err = load.ContextsByName(f.workload); err != nil {
		return fmt.Errorf("--workload %w", err)
	}
	switch f.contexts.Distance = load.Distance(f.distance); f.contexts.Distance {
	case load.Shuffled, load.Minimal, load.Maximal:
	default:
		return fmt.Errorf("--distance %q: want shuffled, minimal or maximal", f.distance)
	}
	if capacity := flags.Lookup("capacity").Value.String(); strings.HasSuffix(capacity, "%") {
		return fmt.Errorf("--capacity %s: want a number of tokens with --workload", capacity)
	}
	return nil
}

// refuseReal returns an error if a flag was set that only a simulated engine understands.
func (f *tierFlags) refuseReal(flags *pflag.FlagSet) error {
	return refuse(flags, "only on the simulator", "order", "tiers", "page", "in-flight", "workload")
}

// loadArm is one side of a comparison.
type loadArm struct {
	name, policy string
	setup        load.Setup
}

// arms returns each policy with each setup; without policies the setups.
func (f *tierFlags) arms(policies []string) []loadArm {
	if f.workload != "" {
		policies = []string{""}
	}
	out := make([]loadArm, 0, len(policies)*len(f.setups))
	for _, policy := range policies {
		for _, setup := range f.setups {
			name := policy
			if f.used() {
				name = strings.TrimSpace(policy + " " + setup.String())
			}
			out = append(out, loadArm{name: name, policy: policy, setup: setup})
		}
	}
	return out
}

// runContexts runs a workload without text.
func (l *loader) runContexts(ctx context.Context, arm loadArm, a load.Arrivals, seed int) (load.Run, error) {
	f := &l.flags.load
	job := load.ContextsJob{
		Contexts: f.tiers.contexts.Of(f.requests), Arrivals: a, Seed: uint64(seed), InFlight: f.tiers.inFlight,
		Warm: f.tiers.warm,
	}
	if l.flags.flags.Changed("think") {
		job.Think = f.think
	}
	server, err := l.model.ServerOf(arm.setup, nil)
	if err != nil {
		return load.Run{}, err
	}
	run, err := job.Simulate(ctx, server)
	run.Policy = arm.name
	return run, err
}

func printTiers(out io.Writer, engine string, points []load.Point) error {
	p := points[0]
	fmt.Fprintf(out, "engine: %s\n", engine)
	fmt.Fprintf(out,
		"%d requests, seeds: %d%s; times in ms; stall: share of the time in which steps wait for loading; loaded: M tokens\n", p.Requests,
		p.Seeds, plusMinus(p.Seeds))
	w := figures.Table(out)
	fmt.Fprintln(w, figures.Row("arrivals", "tiers/order", "TTFT mean", "of "+p.Against, "p95", "requests/s", "of "+p.Against,
		"hit ratio", "stall", "loaded"))
	for _, p := range points {
		fmt.Fprintln(w, figures.Row(p.Arrivals, p.Policy, p.TTFTMean.Show("%.0f"), p.TTFTMeanVs.Show("%.3f"), p.TTFT95.Show("%.0f"),
			p.Rate.Show("%.2f"), p.RateVs.Show("%.3f"), p.Hit.Show("%.3f"), p.Stall.Show("%.2f"), p.Loaded.Show("%.1f")))
	}
	return w.Flush()
}
