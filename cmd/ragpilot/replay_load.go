package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/load"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// loadFlags are the flags of replay under load.
type loadFlags struct {
	arrivals, engineModel, plot       string
	sessions, requests, seeds         int
	batchTokens, maxRunning           int
	think, slo                        time.Duration
	tiers                             tierFlags
	findRate, ignoreEOS, maxTokensSet bool
}

func (f *loadFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.arrivals, "arrivals", "",
		"replay under load: `KIND` poisson:RATE, bursts:RATE,SIZE or closed:USERS; RATE (conversations begun per second) and USERS may be lists")
	flags.IntVar(&f.sessions, "sessions", 0, "under load: use the first `N` conversations of the trace (0: all)")
	flags.IntVar(&f.requests, "requests", 0, "under load: use the first `N` requests of the trace, or make N of the workload (0: all)")
	flags.DurationVar(&f.think, "think", 0, "under load: mean `TIME` between an answer and its user's next request")
	flags.IntVar(&f.seeds, "seeds", 1,
		"under load: `N` runs of each point with other arrival times; reported are means and their 95 % t-intervals")
	flags.StringVar(&f.engineModel, "engine-model", "h100",
		"under load: how fast the simulated engine is: `NAME` or FILE.json; "+strings.Join(load.ModelNames(), ", "))
	flags.IntVar(&f.batchTokens, "batch-tokens", 0,
		"under load: `TOKENS` that a step of the simulated engine computes at most (0: the engine model's)")
	flags.IntVar(&f.maxRunning, "max-running", 0,
		"under load: `N` requests that the simulated engine runs at a time at most (0: the engine model's)")
	flags.BoolVar(&f.findRate, "find-rate", false,
		"under load: look for the largest rate at which the 95th percentile of the time to the first token is at most --slo, from the given "+
			"rate on")
	flags.DurationVar(&f.slo, "slo", 2*time.Second, "under load: the bound of --find-rate, a `TIME`")
	flags.StringVar(&f.plot, "plot", "", "under load: write ttft.svg, output.svg and hits.svg into this `DIR`")
	f.tiers.register(flags)
	flags.BoolVar(&f.ignoreEOS, "ignore-eos", false, "under load: ask a real engine (vLLM, SGLang) not to end answers early")
}

// check returns the arrivals, none without a load, or an error that names the wrong flag.
func (f *loadFlags) check(flags *pflag.FlagSet) ([]load.Arrivals, error) {
	if f.arrivals == "" {
		return nil, refuse(flags, "only with --arrivals", "sessions", "requests", "think", "seeds", "engine-model", "batch-tokens", "max-running",
			"find-rate", "slo", "plot", "ignore-eos", "order", "tiers", "page", "in-flight", "workload", "distance", "warm")
	}
	if flags.Changed("offline") {
		return nil, errors.New("--offline: not with --arrivals, under load every request is planned when it arrives")
	}
	arrivals, err := load.Parse(f.arrivals)
	if err != nil {
		return nil, fmt.Errorf("--arrivals %w", err)
	}
	if err := checkLimits(limited{"sessions", f.sessions, 0}, limited{"requests", f.requests, 0}, limited{"seeds", f.seeds, 1},
		limited{"batch-tokens", f.batchTokens, 0}, limited{"max-running", f.maxRunning, 0}); err != nil {
		return nil, err
	}
	if f.think < 0 {
		return nil, fmt.Errorf("--think %v: must not be negative", f.think)
	}
	if f.slo <= 0 {
		return nil, fmt.Errorf("--slo %v: want more than 0", f.slo)
	}
	switch {
	case f.findRate && arrivals[0].Kind == load.Closed:
		return nil, fmt.Errorf("--find-rate: --arrivals %s has no rate, want poisson or bursts", f.arrivals)
	case f.findRate && len(arrivals) > 1:
		return nil, fmt.Errorf("--find-rate: --arrivals %s has several rates, want the one to start from", f.arrivals)
	case f.findRate && f.plot != "":
		return nil, fmt.Errorf("--plot %s: not with --find-rate", f.plot)
	}
	f.maxTokensSet = flags.Changed("max-tokens")
	return arrivals, f.tiers.check(flags)
}

// loader runs jobs for the command.
type loader struct {
	flags    *replayFlags
	job      load.Job // without policy, arrivals and seed
	arms     []loadArm
	capacity int
	engine   engines.Engine // nil: simulated
	model    load.EngineModel
	name     string
}

// runLoad replays under load.
func (f *replayFlags) runLoad(ctx context.Context, out io.Writer, job load.Job, arrivals []load.Arrivals) error {
	l := loader{flags: f, job: job, arms: f.load.tiers.arms(f.policies)}
	l.job.Trace = firsts(job.Trace, f.load.sessions, f.load.requests)
	l.job.Think, l.job.InFlight = f.load.think, f.load.tiers.inFlight
	if f.load.maxTokensSet {
		if f.maxTokens < 1 {
			return fmt.Errorf("--max-tokens %d: want at least 1", f.maxTokens)
		}
		l.job.MaxTokens = f.maxTokens
	}
	if err := l.open(); err != nil {
		return err
	}
	if f.load.plot != "" {
		if err := os.MkdirAll(f.load.plot, 0o755); err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
	}
	if f.load.findRate {
		return l.findRates(ctx, out, arrivals[0])
	}
	points, err := l.points(ctx, arrivals)
	if err != nil {
		return err
	}
	if f.load.plot != "" {
		for name, svg := range load.Plots(points) {
			if err := os.WriteFile(filepath.Join(f.load.plot, name), svg, 0o644); err != nil {
				return fmt.Errorf("--plot: %w", err)
			}
		}
	}
	if f.json {
		return encode(out, points)
	}
	if f.load.tiers.used() {
		return printTiers(out, l.name, points)
	}
	return printPoints(out, l.name, points)
}

// open makes the engine, or the model of one.
func (l *loader) open() error {
	f := l.flags
	if !f.simulated() {
		if err := f.load.tiers.refuseReal(f.flags); err != nil {
			return err
		}
		engine, err := f.open()
		if err != nil {
			return err
		}
		l.engine, l.name, l.job.Model = engine, engine.Name(), f.model
		if f.load.ignoreEOS {
			l.job.Extra = map[string]json.RawMessage{"ignore_eos": json.RawMessage("true")}
		}
		return nil
	}
	var about string
	var err error
	if l.model, l.capacity, about, err = simulatedEngine(f.load.engineModel, f.capacity, "cache", &l.job); err != nil {
		return err
	}
	if f.load.batchTokens > 0 {
		l.model.BatchTokens = f.load.batchTokens
	}
	if f.load.maxRunning > 0 {
		l.model.MaxRunning = f.load.maxRunning
	}
	for i := range l.arms {
		l.arms[i].setup.Capacity = l.capacity
		if _, err := l.model.ServerOf(l.arms[i].setup, nil); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	l.name = "simulator in virtual time, " + about
	return nil
}

// simulatedEngine returns how fast a simulated engine is, the tokens of its cache, 0 for unlimited, and both in words.
func simulatedEngine(name, capacity, cache string, j *load.Job) (model load.EngineModel, tokens int, about string, err error) {
	if model, err = load.ReadModel(name); err != nil {
		return model, 0, "", fmt.Errorf("--engine-model %w", err)
	}
	if tokens, err = trace.CapacityTokens(capacity, j.Trace, j.Blocks, j.Settings.History); err != nil {
		return model, 0, "", fmt.Errorf("--capacity: %w", err)
	}
	tokens = cmp.Or(tokens, model.CapacityTokens)
	size := "unlimited " + cache
	if tokens > 0 {
		size = fmt.Sprintf("%s of %d tokens", cache, tokens)
	}
	return model, tokens, fmt.Sprintf("%s (%s), %s", model.Name, model.Origin, size), nil
}

func (l *loader) run(ctx context.Context, arm loadArm, a load.Arrivals, seed int) (load.Run, error) {
	if l.flags.load.tiers.workload != "" {
		return l.runContexts(ctx, arm, a, seed)
	}
	job := l.job
	job.Settings.Policy, job.Arrivals, job.Seed = arm.policy, a, uint64(seed)
	if l.engine != nil {
		job.Salt = "Run " + nonce() + "."
		return job.Drive(ctx, l.engine)
	}
	server, err := l.model.ServerOf(arm.setup, load.Replies(job.Trace, job.MaxTokens))
	if err != nil {
		return load.Run{}, err
	}
	run, err := job.Simulate(ctx, server)
	run.Policy = arm.name
	return run, err
}

// eachSeed calls f for each seed: in virtual time several at once, on a real engine one after the other.
func (l *loader) eachSeed(f func(seed int) error) error {
	seeds, workers := l.flags.load.seeds, 1
	if l.engine == nil {
		workers = min(runtime.GOMAXPROCS(0), seeds)
	}
	var group errgroup.Group
	group.SetLimit(workers)
	for seed := range seeds {
		group.Go(func() error { return f(seed) })
	}
	return group.Wait()
}

func (l *loader) points(ctx context.Context, arrivals []load.Arrivals) ([]load.Point, error) {
	var out []load.Point
	for _, a := range arrivals {
		var first []load.Run
		for _, arm := range l.arms {
			runs := make([]load.Run, l.flags.load.seeds)
			err := l.eachSeed(func(seed int) (err error) {
				runs[seed], err = l.run(ctx, arm, a, seed+1)
				return err
			})
			if err != nil {
				return nil, err
			}
			if first == nil {
				first = runs
			}
			p := load.Summarise(runs, first)
			p.Engine, p.Simulated, p.Think = l.name, l.engine == nil, l.job.Think.String()
			out = append(out, p)
		}
	}
	return out, nil
}

func (l *loader) findRates(ctx context.Context, out io.Writer, start load.Arrivals) error {
	var found []load.Sustained
	for _, arm := range l.arms {
		rates := make([]float64, l.flags.load.seeds)
		err := l.eachSeed(func(seed int) (err error) {
			from := start.Rate
			if len(found) > 0 {
				from = found[0].Rates[seed] // a good guess
			}
			rates[seed], err = load.FindRate(from, l.flags.load.slo, func(rate float64) (load.Run, error) {
				a := start
				a.Rate = rate
				return l.run(ctx, arm, a, seed+1)
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("--find-rate: %s: %w", arm.name, err)
		}
		first := rates
		against := arm.name
		if len(found) > 0 {
			first, against = found[0].Rates, found[0].Policy
		}
		s := load.Sustain(arm.name, l.flags.load.slo, rates, against, first)
		s.Arrivals, s.Engine = string(start.Kind), l.name
		found = append(found, s)
	}
	if l.flags.json {
		return encode(out, found)
	}
	return printSustained(out, l.name, l.flags.load.slo, found)
}

// firsts returns the requests of the first conversations, and of these the first ones, 0: all.
func firsts(trc []trace.Request, sessions, requests int) []trace.Request {
	if sessions > 0 {
		seen := map[string]bool{}
		trc = slices.DeleteFunc(slices.Clone(trc), func(q trace.Request) bool {
			if !seen[q.Session] && len(seen) == sessions {
				return true
			}
			seen[q.Session] = true
			return false
		})
	}
	if requests > 0 && requests < len(trc) {
		trc = trc[:requests]
	}
	return trc
}

func printPoints(out io.Writer, engine string, points []load.Point) error {
	p := points[0]
	fmt.Fprintf(out, "engine: %s\n", engine)
	fmt.Fprintf(out, "%d requests, seeds: %d%s; times in ms\n", p.Requests, p.Seeds, plusMinus(p.Seeds))
	w := figures.Table(out)
	fmt.Fprintln(w, figures.Row("arrivals", "policy", "TTFT p50", "p95", "p99", "latency p50", "p95", "tokens/s", "of "+p.Against,
		"hit ratio"))
	for _, p := range points {
		hit := "?"
		if p.HitKnown {
			hit = p.Hit.Show("%.3f")
		}
		fmt.Fprintln(w, figures.Row(p.Arrivals, p.Policy, p.TTFT50.Show("%.0f"), p.TTFT95.Show("%.0f"), p.TTFT99.Show("%.0f"),
			p.Total50.Show("%.0f"), p.Total95.Show("%.0f"), p.Output.Show("%.1f"), p.OutputVs.Show("%.3f"), hit))
	}
	if err := w.Flush(); err != nil || !p.HitKnown {
		return err
	}
	fmt.Fprintf(out, "\nhit ratio of each tenth of the requests\n")
	w = figures.Table(out)
	for _, p := range points {
		fmt.Fprintf(w, "%s\t%s\t", p.Arrivals, p.Policy)
		for _, h := range p.Progress {
			fmt.Fprintf(w, "%.3f\t", h.Mean)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func printSustained(out io.Writer, engine string, slo time.Duration, found []load.Sustained) error {
	fmt.Fprintf(out, "engine: %s\n", engine)
	seeds := len(found[0].Rates)
	fmt.Fprintf(out, "largest rate at which the 95th percentile of TTFT is at most %v, arrivals %s, seeds: %d%s\n", slo, found[0].Arrivals,
		seeds, plusMinus(seeds))
	w := figures.Table(out)
	fmt.Fprintln(w, figures.Row("policy", "conversations/s", "of "+found[0].Policy))
	for _, s := range found {
		fmt.Fprintln(w, figures.Row(s.Policy, s.Rate.Show("%.3f"), s.VsFirst.Show("%.3f")))
	}
	return w.Flush()
}

func plusMinus(seeds int) string {
	if seeds < 2 {
		return ""
	}
	return ", mean ± 95 % t-interval"
}
