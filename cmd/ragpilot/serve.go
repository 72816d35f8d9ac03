package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// serveFlags are what the command line says. Only flags that were given count: the others leave the file alone.
type serveFlags struct {
	file, host, keyFile, cloudAPIKey, sharedState, traceHeaders string

	port   portFlag
	config settings.Config // values of flags that are fields
}

func newServe() *cobra.Command {
	f := serveFlags{config: settings.Default()}
	cmd := newCommand("serve", "Run the HTTP server that stands in front of an engine",
		`Serve answers the HTTP API of ContextPilot and forwards /v1/* to an engine or a cloud provider, with its context
reordered. Settings come from --config, the reference's CONTEXTPILOT_* variables, RAGPILOT_* variables and flags;
later ones win. SIGHUP reads them again: keys, limits, log level, hold-out share, shadow mode, engines whose cache
events are followed, and certificates change without a restart. SIGTERM lets running answers end, a second one does not.`, f.run)
	f.register(cmd.Flags())
	return cmd
}

func (f *serveFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "config", "", "settings `FILE` in YAML, see packaging/ragpilot.yaml")
	flags.StringVar(&f.host, "host", "127.0.0.1", "the host of --listen: `ADDRESS`")
	flags.Var(&f.port, "port", "the port of --listen: `PORT`")
	flags.StringVar(&f.cloudAPIKey, "cloud-api-key", "",
		"`KEY` for the provider; other users of the machine can read it here, RAGPILOT_CLOUD_API_KEY is safer")
	flags.StringVar(&f.keyFile, "key-file", "", "`FILE` with a key that clients must present, beside those of --config")
	flags.StringVar(&f.sharedState, "shared-state", "",
		"redis:// `URL` of what replicas share; with a password, RAGPILOT_SHARED_STATE is safer")
	flags.StringVar(&f.traceHeaders, "trace-headers", "", "`NAME=VALUE,...` for the collector; with a key, RAGPILOT_TRACE_HEADERS is safer")
	registerFields(flags, &f.config)
	registerEvents(flags, &settings.Engine{Kind: "vllm"})
}

// registerFields adds the flags that are fields of a configuration, whose values are the defaults.
func registerFields(flags *pflag.FlagSet, c *settings.Config) {
	flags.StringVar(&c.Listen, "listen", c.Listen, "serve on `HOST:PORT`; port 0 takes a free one")
	flags.BoolVar(&c.AllowAnonymous, "allow-anonymous", c.AllowAnonymous,
		"let --listen be an address that other machines can reach, without client keys")
	flags.StringSliceVar(&c.AllowedHosts, "allowed-hosts", c.AllowedHosts,
		"`NAMES` by which clients may ask, beside IP addresses, localhost and names without a dot; only needed without keys and TLS")
	flags.StringSliceVar(&c.AllowedOrigins, "allowed-origins", c.AllowedOrigins,
		"web pages that may ask, such as https://chat.example.com: `ORIGINS`; *: all")
	flags.StringSliceVar(&c.AllowedPaths, "allowed-paths", c.AllowedPaths,
		"requests that are forwarded beside the usual ones: `\"METHOD /v1/PATH\",...`")
	flags.StringVar(&c.AdminAddr, "admin-addr", c.AdminAddr, "metrics and dashboard on `HOST:PORT`, without keys; empty: off")
	flags.StringSliceVar(&c.AdminHosts, "admin-hosts", c.AdminHosts,
		"`NAMES` by which --admin-addr may be asked, beside IP addresses and localhost")
	flags.BoolVar(&c.Pprof, "pprof", c.Pprof, "serve profiles at /debug/pprof/ on --admin-addr")
	flags.StringVar(&c.ExtProcAddr, "ext-proc-addr", c.ExtProcAddr,
		"answer an Envoy gateway's questions (ext_proc, gRPC) on `HOST:PORT`, without keys; empty: off")
	flags.StringVar(&c.InferAPIURL, "infer-api-url", c.InferAPIURL, "base `URL` of the engine")
	flags.BoolVar(&c.Stateless, "stateless", c.Stateless, "keep no index")
	flags.BoolVar(&c.Compat, "compat", c.Compat,
		"change tool results as the reference does: order the first one's documents, lay texts out anew, and leave documents out without "+
			"naming them")
	flags.BoolVar(&c.CompatIncrementalOrder, "compat-incremental-order", c.CompatIncrementalOrder,
		"list reordered_contexts of later answers of /reorder in the order of the request")
	flags.StringVar(&c.LogLevel, "log-level", c.LogLevel, "`debug|info|warning|error`")
	flags.StringVar(&c.LogFormat, "log-format", c.LogFormat, "`text|json`")
	flags.IntVar(&c.Workers, "workers", c.Workers, "for compatibility, without effect: `N`")
	flags.StringVar(&c.Model, "model", c.Model, "for compatibility, without effect: `MODEL`")
	flags.StringVar(&c.CloudProvider, "cloud-provider", c.CloudProvider, "forward to `anthropic|openai|minimax` in place of --infer-api-url")
	flags.StringVar(&c.CloudBaseURL, "cloud-base-url", c.CloudBaseURL, "where the provider is, or who speaks its API, if not at its own `URL`")
	flags.BoolVar(&c.ExtendedCache, "extended-cache", c.ExtendedCache, "ask the provider for its longer cache")
	flags.IntVar(&c.ChunkModulus, "chunk-modulus", c.ChunkModulus, "mean length of a deduplicated block in lines: `N`")
	flags.IntVar(&c.MaxTokens, "max-tokens", c.MaxTokens, "size of the engine's cache as /health shows it, in tokens; bounds nothing: `N`")
	flags.StringVar(&c.Policy, "policy", c.Policy,
		fmt.Sprintf("order `POLICY`: %v; empty: the profile's, else %s", contextpilot.PolicyNames(), contextpilot.DefaultPolicy))
	flags.StringVar(&c.Profile, "profile", c.Profile,
		fmt.Sprintf("limits of the order by `NAME`, or a file: %v; empty: default, most-reuse with --compat", profile.Names()))
	flags.BoolVar(&c.Shadow, "shadow", c.Shadow, "plan and measure, but forward requests as they came")
	flags.Float64Var(&c.HoldOut, "hold-out", c.HoldOut,
		"`SHARE` of sessions, 0 to 1, whose requests are forwarded as they came, to compare with")
	flags.Float64Var(&c.Recompute, "recompute", c.Recompute,
		"for a ragpilot engine with --reuse: tell it where documents stand, and reckon with the `PART` of a known one that it computes again; "+
			"0: neither")
	registerDiagnosis(flags, c)
	flags.StringVar(&c.Memory.Dir, "memory-dir", c.Memory.Dir, "keep memories in `FOLDER`, and serve Mem0's REST API; empty: off")
	flags.StringVar(&c.Memory.Extract, "memory-extract", c.Memory.Extract,
		"what is remembered of messages: `verbatim|everything|add-only|reconcile`; empty: verbatim")
	flags.StringVar(&c.Memory.Model, "memory-model", c.Memory.Model,
		"`MODEL` that finds facts in messages, at the engine; for add-only and reconcile")
	flags.StringVar(&c.Memory.Embedder, "memory-embedder", c.Memory.Embedder,
		"by what memories are found: `auto|minilm|minilm:DIR|lexical|URL`, where URL answers /v1/embeddings")
	flags.StringVar(&c.Memory.EmbedderModel, "memory-embedder-model", c.Memory.EmbedderModel,
		"`MODEL` of the server that --memory-embedder names")
	flags.StringVar(&c.StateDir, "state-dir", c.StateDir, "`FOLDER` for what a restart should know (hashes, no texts); empty: it begins anew")
	flags.StringVar(&c.TrustTenantHeader, "trust-tenant-header", c.TrustTenantHeader,
		"`HEADER` that holds the tenant; only behind a gateway that sets it")
	flags.StringVar(&c.TLS.Cert, "tls-cert", c.TLS.Cert, "certificate `FILE` in PEM; with --tls-key: serve TLS")
	flags.StringVar(&c.TLS.Key, "tls-key", c.TLS.Key, "`FILE` with the certificate's key")
	flags.StringVar(&c.TLS.ClientCA, "tls-client-ca", c.TLS.ClientCA, "`FILE` with authorities of the certificates that clients must have")
	flags.StringVar(&c.Trace.Endpoint, "trace-endpoint", c.Trace.Endpoint,
		"send traces to the collector at `URL` (OTLP over HTTP); empty: off")
	flags.Float64Var(&c.Trace.Sample, "trace-sample", c.Trace.Sample, "`SHARE` of traces, 0 to 1, recorded where the client does not decide")
	flags.DurationVar(&c.Plan.Window, "plan-window", c.Plan.Window,
		"`TIME` that prompts wait for others, to be planned together; 0: they do not")
	flags.StringVar(&c.Hold.Until, "hold", c.Hold.Until,
		"hold a prompt back while another one computes its beginning, until what it waits for: `auto|off|first-token|answer`; auto: answer for "+
			"llama.cpp with several slots, else off")
	flags.DurationVar(&c.Hold.Longest, "hold-longest", c.Hold.Longest, "`TIME` that a prompt is held back at most")
	registerRules(flags, &c.Stabilise)
	flags.DurationVar(&c.Timeouts.LameDuck, "lame-duck", c.Timeouts.LameDuck,
		"`TIME` after SIGTERM in which requests are still taken, with /readyz at 503")
	flags.DurationVar(&c.Timeouts.Drain, "drain", c.Timeouts.Drain, "`TIME` that running answers get to end after that")
}

// registerDiagnosis adds the flags about what is kept of prompts to show it, and to say why they were not in the cache.
func registerDiagnosis(flags *pflag.FlagSet, c *settings.Config) {
	flags.BoolVar(&c.KeepTexts, "keep-texts", c.KeepTexts, "keep the last prompts in memory, for the dashboard")
	flags.Int64Var(&c.DiagnosisBytes, "diagnosis-bytes", c.DiagnosisBytes,
		"`BYTES` of memory to compare prompts with earlier ones, and find out why they were not in the engine's cache; 0: off")
	flags.BoolVar(&c.MissHeader, "miss-header", c.MissHeader,
		"say in a header of the answer why its prompt misses the cache, as earlier prompts show it; the answer waits for that")
	flags.StringVar(&c.ReplicaHeader, "replica-header", c.ReplicaHeader,
		"`HEADER` of answers that names the engine behind --infer-api-url which answered")
}

// apply puts the flags that were given over a configuration.
func (f *serveFlags) apply(flags *pflag.FlagSet, c *settings.Config) error {
	fields := pflag.NewFlagSet("", pflag.ContinueOnError)
	registerFields(fields, c)
	if err := copyGiven(fields, flags); err != nil {
		return err
	}
	if flags.Changed("cloud-api-key") {
		c.CloudAPIKey, c.CloudAPIKeyFile = settings.Secret(f.cloudAPIKey), ""
	}
	if flags.Changed("key-file") {
		c.Keys = append(c.Keys, settings.Key{File: f.keyFile})
	}
	if flags.Changed("shared-state") {
		c.SharedState = settings.Secret(f.sharedState)
	}
	if flags.Changed("trace-headers") {
		c.Trace.Headers, c.Trace.HeadersFile = settings.Secret(f.traceHeaders), ""
	}
	if err := applyEvents(flags, c); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("%w: listen %q: want host:port", settings.ErrBadConfig, c.Listen)
	}
	if flags.Changed("host") {
		host = strings.Trim(f.host, "[]")
	}
	if f.port != "" {
		port = string(f.port)
	}
	c.Listen = net.JoinHostPort(host, port)
	return nil
}

func (f *serveFlags) run(cmd *cobra.Command) error {
	warnings := unknownVariables(cmd.Flags(), os.Environ()) // the log's format is not known yet
	source := settings.Source{
		File: f.file, Env: os.LookupEnv, Flags: func(c *settings.Config) error { return f.apply(cmd.Flags(), c) },
		Warn: func(text string) { warnings = append(warnings, text) },
	}
	cfg, err := source.Load()
	if err != nil {
		return err
	}
	live, registry := settings.NewLive(cfg), server.NewRegistry()
	logger := server.NewLogger(cmd.ErrOrStderr(), cfg.LogFormat, live)
	for _, text := range warnings {
		logger.Warn(text)
	}
	source.Warn = func(text string) { logger.Warn(text) } // of a reload
	log.SetOutput(server.StandardLog(logger))             // what libraries say who know no other
	log.SetFlags(0)
	cfg.LimitMemory(os.LookupEnv, debug.SetMemoryLimit, logger)
	api, err := sidecar.New(cfg, sidecar.Options{Live: live, Registry: registry, Log: logger, Version: version, LoadCost: loadCost()})
	if err != nil {
		return err
	}
	defer func() {
		if err := api.Close(); err != nil {
			logger.Error("state was not written", "error", err)
		}
	}()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // Windows does not have it
	defer signal.Stop(hangup)
	front, err := server.New(cfg, api,
		server.Options{Logger: logger, Live: live, Registry: registry, Tracer: api.Tracer(), Load: source.Load, Hangup: hangup})
	if err != nil {
		return err
	}
	api.Admin(front.Admin())
	// From the first signal on, the next one ends the process at once; the server learns of the end only then.
	ctx, stop := context.WithCancel(context.WithoutCancel(cmd.Context()))
	defer stop()
	defer context.AfterFunc(cmd.Context(), func() {
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		stop()
	})()
	gateway, err := f.gateway(ctx, api, cfg, logger)
	if err != nil {
		return err
	}
	var own sync.WaitGroup
	defer own.Wait()
	defer stop()
	own.Go(func() { api.Run(ctx) })
	began := time.Now()
	err = front.Run(ctx)
	stop()
	if err := errors.Join(err, gateway()); err != nil {
		return err
	}
	logger.Info("stopped", "after", time.Since(began))
	return nil
}

// gateway opens the listener for an Envoy gateway, if one is configured, and serves it until ctx ends. What it returns waits for
// the end.
func (f *serveFlags) gateway(ctx context.Context, api *sidecar.API, cfg settings.Config, logger *slog.Logger) (wait func() error,
	err error,
) {
	if cfg.ExtProcAddr == "" {
		return func() error { return nil }, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", cfg.ExtProcAddr)
	if err != nil {
		return nil, fmt.Errorf("serve: ext_proc_addr: %w", err)
	}
	logger.Info("listening for a gateway", "addr", l.Addr().String())
	ended := make(chan error, 1)
	go func() {
		ended <- api.ServeExternalProcessing(ctx, l, cfg.TrustTenantHeader, cfg.Limits.BodyBytes, cfg.Timeouts.Drain, logger)
	}()
	return func() error { return <-ended }, nil
}

// portFlag is a port; empty: not given.
type portFlag string

func (p *portFlag) String() string { return string(*p) }
func (*portFlag) Type() string     { return "port" }

// Set refuses what is no port, but for one thing: Kubernetes sets RAGPILOT_PORT=tcp://10.0.0.1:8765 in every pod
// beside a service that is called ragpilot. That counts as not given.
func (p *portFlag) Set(value string) error {
	if strings.HasPrefix(value, "tcp://") || strings.HasPrefix(value, "udp://") {
		return nil
	}
	if _, err := strconv.ParseUint(value, 10, 16); err != nil {
		return errors.New("want 0 to 65535")
	}
	*p = portFlag(value)
	return nil
}

// registerEvents adds the flags that say where the engine publishes its cache events; its values are the defaults. They describe one
// engine; the configuration file can hold several.
func registerEvents(flags *pflag.FlagSet, e *settings.Engine) {
	flags.StringVar(&e.Events, "kv-events", e.Events,
		"follow the engine's cache events at `ENDPOINT`: tcp://HOST:PORT, ipc://PATH, or auto to ask the engine; empty: off")
	flags.StringVar(&e.Replay, "kv-replay", e.Replay, "`ENDPOINT` where the engine can be asked for events that were missed")
	flags.StringVar(&e.Kind, "kv-engine", e.Kind, "the engine that publishes them: `vllm|sglang`")
	flags.StringVar(&e.Topic, "kv-topic", e.Topic, "`PREFIX` of their topics")
	flags.BoolVar(&e.Listen, "kv-listen", e.Listen, "the engine connects to --kv-events, an address of this machine")
	flags.IntVar(&e.Ranks, "kv-ranks", e.Ranks, "`N` data-parallel ranks, on ports that count from those of --kv-events and --kv-replay")
}

// applyEvents puts the flags that were given over a configuration's engine.
func applyEvents(flags *pflag.FlagSet, c *settings.Config) error {
	if flags.Changed("kv-events") && flags.Lookup("kv-events").Value.String() == "" {
		c.Engines = nil
		return nil
	}
	e := settings.Engine{Kind: "vllm"}
	if len(c.Engines) > 0 {
		e = c.Engines[0]
	}
	fields := pflag.NewFlagSet("", pflag.ContinueOnError)
	registerEvents(fields, &e)
	given := false
	fields.VisitAll(func(x *pflag.Flag) { given = given || flags.Changed(x.Name) })
	switch {
	case !given:
		return nil
	case len(c.Engines) > 1:
		return fmt.Errorf("%w: engines: --kv-* flags are for one engine, the file has %d", settings.ErrBadConfig, len(c.Engines))
	}
	err := copyGiven(fields, flags)
	c.Engines = []settings.Engine{e}
	return err
}
