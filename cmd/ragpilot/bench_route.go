package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/load"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
)

// routeFlags are the flags of bench route.
type routeFlags struct {
	traceFlags
	real                         engineFlags // but for its engine
	servers                      serverFlags
	arms                         []string
	replicas                     []int
	arrivals, model, workload    string
	contexts, requests, sessions int
	seeds                        int
	think                        time.Duration
	router                       engines.RouterOptions
	maxTokensSet, json           bool
}

func newBenchRoute() *cobra.Command {
	f := &routeFlags{}
	cmd := newCommand("route (--trace T --blocks B | --workload NAME) --arrivals KIND",
		"Compare ways to spread requests over replicas of an engine",
		`Route replays a trace on several replicas, in virtual time on simulated ones or in real time on those at --engine, and
compares: order and replica chosen together (joint), the same order spread by load or in turn, and prompts as
retrieved that go to where their prefix is (prefix-only). Every arm starts with empty caches. The table tells the
prompt tokens that were computed, their part that was read from caches, the largest share of one replica of the
computed tokens of 500 requests as a multiple of the mean, the time to the first token, and how many times as much
as the first arm is computed.`, func(cmd *cobra.Command) error {
			f.maxTokensSet = cmd.Flags().Changed("max-tokens")
			arrivals, err := f.check(cmd.Flags())
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), arrivals)
		})
	flags := cmd.Flags()
	f.register(flags)
	flags.StringVar(&f.workload, "workload", "", fmt.Sprintf("in place of a trace, make a workload up: `NAME` of %v", workload.Names()))
	flags.IntVar(&f.contexts, "contexts", 0, "with --workload, `N` requests (0: the workload's)")
	flags.IntVar(&f.sessions, "sessions", 0, "use the first `N` conversations of the trace (0: all)")
	flags.IntVar(&f.requests, "requests", 0, "use the first `N` requests of the trace (0: all)")
	flags.StringSliceVar(&f.arms, "arms", armNames(), "`ARMS` to compare; the first one is what the others are compared with")
	flags.IntSliceVar(&f.replicas, "replicas", []int{2, 4}, "numbers of simulated replicas, a `LIST`")
	flags.StringVar(&f.arrivals, "arrivals", "poisson:3",
		"`KIND` poisson:RATE, bursts:RATE,SIZE or closed:USERS at each replica: all of them get N times as much; RATE and USERS may be lists")
	flags.DurationVar(&f.think, "think", 0, "mean `TIME` between an answer and its user's next request")
	flags.IntVar(&f.seeds, "seeds", 1, "`N` runs of each with other arrival times; reported are means and their 95 % t-intervals")
	flags.StringVar(&f.model, "engine-model", "h100", "how fast the simulated replicas are: `h100|cpu-tiny|FILE.json`")
	flags.StringVar(&f.capacity, "capacity", "unlimited", "cache of each simulated replica: `TOKENS`, or a share of the trace such as 20%")
	f.servers.register(flags)
	flags.StringVar(&f.real.model, "model", "", "`MODEL` to ask real replicas for")
	flags.StringVar(&f.real.apiKey, "api-key", "", "`KEY` for real replicas; RAGPILOT_API_KEY is safer")
	flags.StringVar(&f.real.requestID, "request-id", "all", "how real replicas are told a request's ID: `all|header|none`")
	flags.IntVar(&f.real.maxTokens, "max-tokens", 16, "length of answers in `TOKENS` (simulated: as recorded, unless given)")
	flags.IntVar(&f.router.Window, "window", 0, "`N` requests over which the router balances prefill (0: 500)")
	flags.Float64Var(&f.router.MaxShare, "max-share", 0,
		"`BOUND` of a replica's prefill within the window, as a multiple of the mean (0: 1.15)")
	flags.Float64Var(&f.router.Affinity, "affinity", 0, "`WORTH` of a familiar token to the router (0: 0.3; negative: none)")
	flags.Float64Var(&f.router.Queue, "queue", 0, "`COST` of a waiting token to the router (0: 0.3; negative: none)")
	flags.BoolVar(&f.json, "json", false, "one JSON object for each line of the table")
	return cmd
}

func armNames() []string {
	arms := load.Arms()
	names := make([]string, len(arms))
	for i, a := range arms {
		names[i] = a.Name
	}
	return names
}

// check returns the arrivals, or an error that names the wrong flag.
func (f *routeFlags) check(flags *pflag.FlagSet) ([]load.Arrivals, error) {
	arrivals, err := load.Parse(f.arrivals)
	if err != nil {
		return nil, fmt.Errorf("--arrivals %w", err)
	}
	if err := checkLimits(limited{"contexts", f.contexts, 0}, limited{"sessions", f.sessions, 0}, limited{"requests", f.requests, 0},
		limited{"seeds", f.seeds, 1}, limited{"max-tokens", f.real.maxTokens, 1}); err != nil {
		return nil, err
	}
	if f.think < 0 {
		return nil, fmt.Errorf("--think %v: must not be negative", f.think)
	}
	if m := f.router.MaxShare; m != 0 && !(m >= 1) {
		return nil, fmt.Errorf("--max-share %g: want at least 1", m)
	}
	if f.workload == "" && f.contexts > 0 {
		return nil, fmt.Errorf("--contexts %d: only with --workload", f.contexts)
	}
	if f.workload != "" && f.trace+f.blocks != "" {
		return nil, fmt.Errorf("--workload %s: not with --trace and --blocks", f.workload)
	}
	if len(f.replicas) == 0 {
		return nil, errors.New("--replicas is required")
	}
	for _, n := range f.replicas {
		if n < 1 || n > load.MaxServers {
			return nil, fmt.Errorf("--replicas %d: want 1 to %d", n, load.MaxServers)
		}
	}
	if len(f.servers.urls) > load.MaxServers {
		return nil, fmt.Errorf("--engine: %d of them, want at most %d", len(f.servers.urls), load.MaxServers)
	}
	without, why := append(f.servers.names(), "model", "api-key", "request-id"), "only with --engine"
	if len(f.servers.urls) > 0 {
		without, why = []string{"replicas", "engine-model", "capacity"}, "not with --engine"
	}
	if err := refuse(flags, why, without...); err != nil {
		return nil, err
	}
	return arrivals, f.servers.check()
}

// chosen returns the arms to compare.
func (f *routeFlags) chosen() ([]load.Arm, error) {
	var out []load.Arm
	for _, name := range f.arms {
		i := slices.Index(armNames(), name)
		if i < 0 {
			return nil, fmt.Errorf("--arms %q: want some of %v", name, armNames())
		}
		out = append(out, load.Arms()[i])
	}
	if len(out) == 0 {
		return nil, errors.New("--arms is required")
	}
	return out, nil
}

// job reads or makes the trace.
func (f *routeFlags) job() (load.Job, error) {
	if f.workload != "" {
		f.trace, f.blocks = f.workload, f.workload // there is a trace, though not in a file
	}
	set, err := f.settings(contextpilot.DefaultPolicy)
	if err != nil {
		return load.Job{}, err
	}
	var trc []trace.Request
	var blocks *trace.Blocks
	if f.workload == "" {
		trc, blocks, err = trace.Load(f.trace, f.blocks)
	} else {
		trc, blocks, err = f.generate()
	}
	if err != nil {
		return load.Job{}, err
	}
	cut(trc, set.K)
	j := load.Job{Settings: set, Trace: firsts(trc, f.sessions, f.requests), Blocks: blocks, Think: f.think, Model: f.real.model}
	if f.maxTokensSet || len(f.servers.urls) > 0 {
		j.MaxTokens = f.real.maxTokens
	}
	return j, nil
}

func (f *routeFlags) generate() ([]trace.Request, *trace.Blocks, error) {
	o, err := workload.Named(f.workload)
	if err != nil {
		return nil, nil, fmt.Errorf("--workload %w", err)
	}
	if f.contexts > 0 {
		o.Contexts = f.contexts
	}
	return workload.Generate(o)
}

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
	model, capacity, about, err := simulatedEngine(r.flags.model, r.flags.capacity, "caches", &r.job)
	if err != nil {
		return nil, err
	}
	r.engine = "simulators in virtual time, " + about
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

func printRoutes(out io.Writer, engine string, points []load.RoutePoint) error {
	p := points[0]
	fmt.Fprintf(out, "engines: %s\n", engine)
	fmt.Fprintf(out, "%d requests, seeds: %d%s; times in ms; share: largest of one replica of the tokens computed for %d requests, × mean\n",
		p.Requests, p.Seeds, plusMinus(p.Seeds), min(load.BalanceWindow, p.Requests))
	w := figures.Table(out)
	fmt.Fprintln(w, figures.Row("replicas", "arrivals", "arm", "computed", "hit ratio", "share", "TTFT p50", "p95", "of "+p.Against))
	for _, p := range points {
		computed, hit, balance, factor := "?", "?", "?", "?"
		if p.HitKnown {
			computed, hit = p.Prefill.Show("%.0f"), p.Hit.Show("%.3f")
			balance, factor = fmt.Sprintf("%.2f", p.Imbalance.Max), p.VsFirst.Show("%.3f")
		}
		fmt.Fprintln(w, figures.Row(fmt.Sprint(p.Replicas), p.Arrivals, p.Arm, computed, hit, balance, p.TTFT50.Show("%.0f"),
			p.TTFT95.Show("%.0f"), factor))
	}
	return w.Flush()
}
