package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/engines/vllm"
	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// batchEngineFlags name the engines that answer the rows of tables, and what bounds them.
type batchEngineFlags struct {
	engines       []string
	model, apiKey string
	local         local.Config
	concurrency   int
	timeout       time.Duration
	settings      string
	prices        batch.Prices
	currency      string // what prices are in; empty: not known
	maxCost       float64
	deadline      string
	schemaUnsent  bool
	keepGoing     bool
}

// localConcurrency is how many requests a model in this process gets at a time: more only wait for the processor.
const localConcurrency = 4

func (f *batchEngineFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.engines, "engine", []string{"local"},
		"`local|URL|sim`: a model in this process, the base URL of an OpenAI-compatible engine, or the simulator; may be given several times")
	flags.StringVar(&f.model, "model", "",
		"`MODEL` to ask an engine for; with local a GGUF file, or the name of a model that can be pulled")
	flags.StringVar(&f.apiKey, "api-key", "", "`KEY` for an engine; RAGPILOT_API_KEY is safer")
	flags.IntVar(&f.concurrency, "concurrency", 0, "`N` requests in flight on each engine; 0: found out by trying (4 with local)")
	flags.DurationVar(&f.timeout, "timeout", 0, "longest `TIME` of one attempt; 0: 15m")
	flags.StringVar(&f.settings, "config", "",
		"`FILE` with settings of ragpilot serve, whose prices apply; empty: only those of the flags below")
	flags.Float64Var(&f.prices.Input, "input-price", 0, "`PRICE` of a million prompt tokens")
	flags.Float64Var(&f.prices.Cached, "cached-price", 0, "`PRICE` of a million prompt tokens from the cache")
	flags.Float64Var(&f.prices.Output, "output-price", 0, "`PRICE` of a million tokens of answers")
	flags.Float64Var(&f.maxCost, "max-cost", 0, "pause the job before it costs more than this `MONEY`, by the prices; 0: no bound")
	flags.StringVar(&f.deadline, "deadline", "", "pause the job at a `TIME` like 2026-01-31T06:00:00Z, or like 8h from now")
	flags.BoolVar(&f.schemaUnsent, "schema-unsent", false, "do not send the schema to the engine; answers are still checked")
	flags.BoolVar(&f.keepGoing, "keep-going", false,
		"do not pause the job if an engine refuses the first rows alike: they fail")
	registerFiles(flags, &f.local)
	registerDevice(flags, &f.local.Device, &f.local.DeviceBytes)
}

// check refuses what cannot be before anything is read.
func (f *batchEngineFlags) check() (batch.WorkOptions, error) {
	o := batch.WorkOptions{
		Concurrency: f.concurrency, Prices: f.prices, MaxCost: f.maxCost, Timeout: f.timeout, SchemaUnsent: f.schemaUnsent,
		KeepGoing: f.keepGoing,
	}
	if err := checkLimits(limited{"concurrency", f.concurrency, 0}); err != nil {
		return o, err
	}
	if f.timeout < 0 {
		return o, fmt.Errorf("--timeout %v: want at least 0", f.timeout)
	}
	if err := checkAmounts(
		amount{"input-price", f.prices.Input}, amount{"cached-price", f.prices.Cached}, amount{"output-price", f.prices.Output},
		amount{"max-cost", f.maxCost},
	); err != nil {
		return o, err
	}
	if err := f.readPrices(); err != nil {
		return o, err
	}
	o.Prices = f.prices
	if f.maxCost > 0 && f.prices == (batch.Prices{}) {
		return o, fmt.Errorf("--max-cost %g: needs --input-price and --output-price, or --config", f.maxCost)
	}
	if f.deadline != "" {
		if wait, err := time.ParseDuration(f.deadline); err == nil {
			o.Deadline = time.Now().Add(wait)
		} else if o.Deadline, err = time.Parse(time.RFC3339, f.deadline); err != nil {
			return o, fmt.Errorf("--deadline %q: want a time like 2026-01-31T06:00:00Z, or one like 8h from now", f.deadline)
		}
		if !o.Deadline.After(time.Now()) {
			return o, fmt.Errorf("--deadline %q: it is in the past", f.deadline)
		}
	}
	return o, checkDevice(f.local.Device, f.local.DeviceBytes)
}

// amount is the value of a flag that is a finite number, and not less than 0.
type amount struct {
	flag  string
	value float64
}

// checkAmounts returns an error that names the first value that is none.
func checkAmounts(amounts ...amount) error {
	for _, a := range amounts {
		if !(a.value >= 0) || math.IsInf(a.value, 1) {
			return fmt.Errorf("--%s %g: want a number that is at least 0", a.flag, a.value)
		}
	}
	return nil
}

// readPrices takes the prices of the model from the settings, but for those that flags give.
func (f *batchEngineFlags) readPrices() error {
	if f.settings == "" {
		return nil
	}
	config, err := settings.Source{File: f.settings}.Load()
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	price, ok := cloudcache.NewRates(sidecar.PricesOf(config)).Of(f.model)
	if !ok {
		return fmt.Errorf("--config %s: it has no price for --model %q", f.settings, f.model)
	}
	f.currency = config.Currency
	f.prices = batch.Prices{
		Input: cmp.Or(f.prices.Input, price.Input), Cached: cmp.Or(f.prices.Cached, price.CacheRead),
		Output: cmp.Or(f.prices.Output, price.Output),
	}
	return nil
}

// opened are the engines of a command.
type opened struct {
	replicas []batch.Replica
	tokenize batch.Tokenize // nil: the first engine cannot
	block    int            // tokens of a block of the first engine's cache; 0: it has none, or does not say
	remote   []*openai.Engine
	close    func() error
}

// open opens the engines. One that cannot be reached is an error now, and only waited for later.
func (f *batchEngineFlags) open(ctx context.Context, o *batch.WorkOptions, progress io.Writer) (all opened, err error) {
	var closers []func() error
	all.close = func() error {
		errs := make([]error, len(closers))
		for i, c := range closers {
			errs[i] = c()
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, all.close())
		}
	}()
	for i, name := range f.engines {
		if (name == "local" || name == "sim") && slices.Contains(f.engines[:i], name) {
			return all, fmt.Errorf("--engine %s: it is given twice", name)
		}
		replica := batch.Replica{Name: name}
		switch name {
		case "sim":
			replica.Engine = sim.New(sim.Options{})
		case "local":
			engine, err := f.openLocal(ctx, o, progress)
			if err != nil {
				return all, err
			}
			closers = append(closers, engine.Close)
			replica.Engine = engine
			if len(all.replicas) == 0 {
				all.tokenize = func(_ context.Context, m []engines.Message) ([]int32, error) { return engine.TokenizeChat(m), nil }
				all.block = local.BlockTokens
			}
		default:
			engine, err := f.openURL(ctx, name)
			if err != nil {
				return all, err
			}
			closers = append(closers, engine.Close)
			if slices.ContainsFunc(all.remote, func(e *openai.Engine) bool { return e.Name() == engine.Name() }) {
				return all, fmt.Errorf("--engine: %s is given twice", engine.Name())
			}
			all.remote = append(all.remote, engine)
			replica.Name, replica.Engine = engine.Name(), engine
			if len(all.replicas) == 0 {
				if tokenizes(ctx, engine) {
					all.tokenize, all.block = engine.TokenizeChat, f.blockSize(ctx, name)
				}
			}
		}
		all.replicas = append(all.replicas, replica)
	}
	o.Replicas = all.replicas
	if len(all.remote) > 0 {
		o.Probe = all.probe
	}
	return all, nil
}

// probe returns nil if an engine can be reached.
func (all *opened) probe(ctx context.Context) error {
	var errs []error
	for _, engine := range all.remote {
		err := reachable(ctx, engine)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// reachable returns nil if an engine answers, whatever it says.
func reachable(ctx context.Context, engine *openai.Engine) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := engine.Do(ctx, http.MethodGet, "/v1/models", nil); errors.Is(err, engines.ErrUnreachable) || ctx.Err() != nil {
		return err
	}
	return nil
}

// probeTimeout bounds the questions to an engine that is opened.
const probeTimeout = 10 * time.Second

// tokenizes reports whether an engine says what the tokens of a chat are.
func tokenizes(ctx context.Context, engine *openai.Engine) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := engine.TokenizeChat(ctx, []engines.Message{{Role: engines.User, Content: "Hello."}})
	return err == nil
}

// blockSize returns how many tokens a block of an engine's cache has, as vLLM and the local engine say in their metrics; else 0.
func (f *batchEngineFlags) blockSize(ctx context.Context, url string) int {
	engine, err := vllm.New(vllm.Config{Server: openai.Config{BaseURL: url, APIKey: f.apiKey, Retries: -1}, Patience: probeTimeout})
	if err != nil {
		return 0
	}
	defer engine.Close()
	m, err := engine.Metrics(ctx)
	if err != nil {
		return 0
	}
	return m.BlockSize
}

func (f *batchEngineFlags) openURL(ctx context.Context, url string) (*openai.Engine, error) {
	engine, err := openai.New(openai.Config{BaseURL: url, Model: f.model, APIKey: f.apiKey, Retries: -1, IDs: openai.IDHeader})
	if err != nil {
		return nil, fmt.Errorf("--engine: %w", err)
	}
	if err := reachable(ctx, engine); err != nil {
		return nil, errors.Join(fmt.Errorf("--engine: %w", err), engine.Close())
	}
	return engine, nil
}

func (f *batchEngineFlags) openLocal(ctx context.Context, o *batch.WorkOptions, progress io.Writer) (*local.Engine, error) {
	if o.Concurrency == 0 && len(f.engines) == 1 {
		o.Concurrency = localConcurrency
	}
	path, err := modelFile(ctx, f.model, progress)
	if err != nil {
		return nil, err
	}
	engine, err := openModel(path, f.local)
	if err != nil {
		return nil, fmt.Errorf("--engine local: %w", err)
	}
	for _, w := range engine.Warnings() {
		fmt.Fprintln(progress, w)
	}
	if err := slow(engine); err != nil {
		fmt.Fprintf(progress, "answers take long: %v\n", err)
	}
	return engine, nil
}

// servedModel is the model that requests name: with local the flag names a file, of which requests know nothing.
func (f *batchEngineFlags) servedModel() string {
	if slices.Contains(f.engines, "local") {
		return ""
	}
	return f.model
}
