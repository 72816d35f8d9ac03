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
	events eventFlags
	config settings.Config // values of flags that are fields
}

func newServe() *cobra.Command {
	f := serveFlags{config: settings.Default()}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the HTTP server that stands in front of an engine",
		Long: "Serve answers the HTTP API of ContextPilot and forwards /v1/* to an engine or a cloud provider, with its context\n" +
			"reordered. Settings come from --config, the reference's CONTEXTPILOT_* variables, RAGPILOT_* variables and flags;\n" +
			"later ones win. SIGHUP reads them again: keys, limits, log level, hold-out share, shadow mode, engines whose cache\n" +
			"events are followed, and certificates change without a restart. SIGTERM lets running answers end, a second one does not.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *serveFlags) register(flags *pflag.FlagSet) {
	c := &f.config
	flags.StringVar(&f.file, "config", "", "settings `FILE` in YAML, see packaging/ragpilot.yaml")
	flags.StringVar(&c.Listen, "listen", c.Listen, "serve on `HOST:PORT`; port 0 takes a free one")
	flags.StringVar(&f.host, "host", "127.0.0.1", "the host of --listen: `ADDRESS`")
	flags.Var(&f.port, "port", "the port of --listen: `PORT`")
	flags.BoolVar(&c.AllowAnonymous, "allow-anonymous", c.AllowAnonymous, "let --listen be an address that other machines can reach, without client keys")
	flags.StringSliceVar(&c.AllowedHosts, "allowed-hosts", nil, "`NAMES` by which clients may ask, beside IP addresses, localhost and names without a dot; only needed without keys and TLS")
	flags.StringSliceVar(&c.AllowedOrigins, "allowed-origins", nil, "web pages that may ask, such as https://chat.example.com: `ORIGINS`; *: all")
	flags.StringSliceVar(&c.AllowedPaths, "allowed-paths", nil, "requests that are forwarded beside the usual ones: `\"METHOD /v1/PATH\",...`")
	flags.StringVar(&c.AdminAddr, "admin-addr", c.AdminAddr, "metrics and dashboard on `HOST:PORT`, without keys; empty: off")
	flags.StringSliceVar(&c.AdminHosts, "admin-hosts", nil, "`NAMES` by which --admin-addr may be asked, beside IP addresses and localhost")
	flags.BoolVar(&c.Pprof, "pprof", c.Pprof, "serve profiles at /debug/pprof/ on --admin-addr")
	flags.StringVar(&c.ExtProcAddr, "ext-proc-addr", c.ExtProcAddr, "answer an Envoy gateway's questions (ext_proc, gRPC) on `HOST:PORT`, without keys; empty: off")
	flags.StringVar(&c.InferAPIURL, "infer-api-url", c.InferAPIURL, "base `URL` of the engine")
	f.events.register(flags)
	flags.BoolVar(&c.Stateless, "stateless", c.Stateless, "keep no index")
	flags.BoolVar(&c.Compat, "compat", c.Compat, "change tool results as the reference does: order the first one's documents, lay texts out anew, and leave documents out without naming them")
	flags.BoolVar(&c.CompatIncrementalOrder, "compat-incremental-order", c.CompatIncrementalOrder, "list reordered_contexts of later answers of /reorder in the order of the request")
	flags.StringVar(&c.LogLevel, "log-level", c.LogLevel, "`debug|info|warning|error`")
	flags.StringVar(&c.LogFormat, "log-format", c.LogFormat, "`text|json`")
	flags.IntVar(&c.Workers, "workers", c.Workers, "for compatibility, without effect: `N`")
	flags.StringVar(&c.Model, "model", c.Model, "for compatibility, without effect: `MODEL`")
	flags.StringVar(&c.CloudProvider, "cloud-provider", c.CloudProvider, "forward to `anthropic|openai|minimax` in place of --infer-api-url")
	flags.StringVar(&c.CloudBaseURL, "cloud-base-url", c.CloudBaseURL, "where the provider is, or who speaks its API, if not at its own `URL`")
	flags.StringVar(&f.cloudAPIKey, "cloud-api-key", "", "`KEY` for the provider; other users of the machine can read it here, RAGPILOT_CLOUD_API_KEY is safer")
	flags.StringVar(&f.keyFile, "key-file", "", "`FILE` with a key that clients must present, beside those of --config")
	flags.BoolVar(&c.ExtendedCache, "extended-cache", c.ExtendedCache, "ask the provider for its longer cache")
	flags.IntVar(&c.ChunkModulus, "chunk-modulus", c.ChunkModulus, "mean length of a deduplicated block in lines: `N`")
	flags.IntVar(&c.MaxTokens, "max-tokens", c.MaxTokens, "size of the engine's cache as /health shows it, in tokens; bounds nothing: `N`")
	flags.StringVar(&c.Policy, "policy", c.Policy, fmt.Sprintf("order `POLICY`: %v; empty: the profile's, else %s", contextpilot.PolicyNames(), contextpilot.DefaultPolicy))
	flags.StringVar(&c.Profile, "profile", c.Profile, fmt.Sprintf("limits of the order by `NAME`, or a file: %v; empty: default", profile.Names()))
	flags.BoolVar(&c.Shadow, "shadow", c.Shadow, "plan and measure, but forward requests as they came")
	flags.Float64Var(&c.HoldOut, "hold-out", c.HoldOut, "`SHARE` of sessions, 0 to 1, whose requests are forwarded as they came, to compare with")
	flags.Float64Var(&c.Recompute, "recompute", c.Recompute, "for a ragpilot engine with --reuse: tell it where documents stand, and reckon with the `PART` of a known one that it computes again; 0: neither")
	flags.BoolVar(&c.KeepTexts, "keep-texts", c.KeepTexts, "keep the last prompts in memory, for the dashboard")
	flags.StringVar(&c.Memory.Dir, "memory-dir", c.Memory.Dir, "keep memories in `FOLDER`, and serve Mem0's REST API; empty: off")
	flags.StringVar(&c.Memory.Extract, "memory-extract", c.Memory.Extract, "what is remembered of messages: `verbatim|everything|add-only|reconcile`; empty: verbatim")
	flags.StringVar(&c.Memory.Model, "memory-model", c.Memory.Model, "`MODEL` that finds facts in messages, at the engine; for add-only and reconcile")
	flags.StringVar(&c.Memory.Embedder, "memory-embedder", c.Memory.Embedder, "by what memories are found: `auto|minilm|minilm:DIR|lexical|URL`, where URL answers /v1/embeddings")
	flags.StringVar(&c.Memory.EmbedderModel, "memory-embedder-model", c.Memory.EmbedderModel, "`MODEL` of the server that --memory-embedder names")
	flags.StringVar(&c.StateDir, "state-dir", c.StateDir, "`FOLDER` for what a restart should know (hashes, no texts); empty: it begins anew")
	flags.StringVar(&f.sharedState, "shared-state", "", "redis:// `URL` of what replicas share; with a password, RAGPILOT_SHARED_STATE is safer")
	flags.StringVar(&c.TrustTenantHeader, "trust-tenant-header", c.TrustTenantHeader, "`HEADER` that holds the tenant; only behind a gateway that sets it")
	flags.StringVar(&c.TLS.Cert, "tls-cert", c.TLS.Cert, "certificate `FILE` in PEM; with --tls-key: serve TLS")
	flags.StringVar(&c.TLS.Key, "tls-key", c.TLS.Key, "`FILE` with the certificate's key")
	flags.StringVar(&c.TLS.ClientCA, "tls-client-ca", c.TLS.ClientCA, "`FILE` with authorities of the certificates that clients must have")
	flags.StringVar(&c.Trace.Endpoint, "trace-endpoint", c.Trace.Endpoint, "send traces to the collector at `URL` (OTLP over HTTP); empty: off")
	flags.StringVar(&f.traceHeaders, "trace-headers", "", "`NAME=VALUE,...` for the collector; with a key, RAGPILOT_TRACE_HEADERS is safer")
	flags.Float64Var(&c.Trace.Sample, "trace-sample", c.Trace.Sample, "`SHARE` of traces, 0 to 1, recorded where the client does not decide")
	flags.DurationVar(&c.Plan.Window, "plan-window", c.Plan.Window, "`TIME` that prompts wait for others, to be planned together; 0: they do not")
	flags.DurationVar(&c.Timeouts.LameDuck, "lame-duck", c.Timeouts.LameDuck, "`TIME` after SIGTERM in which requests are still taken, with /readyz at 503")
	flags.DurationVar(&c.Timeouts.Drain, "drain", c.Timeouts.Drain, "`TIME` that running answers get to end after that")
}

// apply puts the flags that were given over a configuration.
func (f *serveFlags) apply(flags *pflag.FlagSet, c *settings.Config) error {
	from := f.config
	for name, set := range map[string]func(){ // each sets fields of its own: the order does not matter
		"listen":                   func() { c.Listen = from.Listen },
		"allow-anonymous":          func() { c.AllowAnonymous = from.AllowAnonymous },
		"allowed-hosts":            func() { c.AllowedHosts = from.AllowedHosts },
		"allowed-origins":          func() { c.AllowedOrigins = from.AllowedOrigins },
		"allowed-paths":            func() { c.AllowedPaths = from.AllowedPaths },
		"admin-hosts":              func() { c.AdminHosts = from.AdminHosts },
		"pprof":                    func() { c.Pprof = from.Pprof },
		"admin-addr":               func() { c.AdminAddr = from.AdminAddr },
		"ext-proc-addr":            func() { c.ExtProcAddr = from.ExtProcAddr },
		"infer-api-url":            func() { c.InferAPIURL = from.InferAPIURL },
		"stateless":                func() { c.Stateless = from.Stateless },
		"compat":                   func() { c.Compat = from.Compat },
		"compat-incremental-order": func() { c.CompatIncrementalOrder = from.CompatIncrementalOrder },
		"log-level":                func() { c.LogLevel = from.LogLevel },
		"log-format":               func() { c.LogFormat = from.LogFormat },
		"workers":                  func() { c.Workers = from.Workers },
		"model":                    func() { c.Model = from.Model },
		"cloud-provider":           func() { c.CloudProvider = from.CloudProvider },
		"cloud-base-url":           func() { c.CloudBaseURL = from.CloudBaseURL },
		"cloud-api-key":            func() { c.CloudAPIKey, c.CloudAPIKeyFile = settings.Secret(f.cloudAPIKey), "" },
		"key-file":                 func() { c.Keys = append(c.Keys, settings.Key{File: f.keyFile}) },
		"extended-cache":           func() { c.ExtendedCache = from.ExtendedCache },
		"chunk-modulus":            func() { c.ChunkModulus = from.ChunkModulus },
		"max-tokens":               func() { c.MaxTokens = from.MaxTokens },
		"policy":                   func() { c.Policy = from.Policy },
		"profile":                  func() { c.Profile = from.Profile },
		"shadow":                   func() { c.Shadow = from.Shadow },
		"hold-out":                 func() { c.HoldOut = from.HoldOut },
		"recompute":                func() { c.Recompute = from.Recompute },
		"keep-texts":               func() { c.KeepTexts = from.KeepTexts },
		"state-dir":                func() { c.StateDir = from.StateDir },
		"memory-dir":               func() { c.Memory.Dir = from.Memory.Dir },
		"memory-extract":           func() { c.Memory.Extract = from.Memory.Extract },
		"memory-model":             func() { c.Memory.Model = from.Memory.Model },
		"memory-embedder":          func() { c.Memory.Embedder = from.Memory.Embedder },
		"memory-embedder-model":    func() { c.Memory.EmbedderModel = from.Memory.EmbedderModel },
		"shared-state":             func() { c.SharedState = settings.Secret(f.sharedState) },
		"trust-tenant-header":      func() { c.TrustTenantHeader = from.TrustTenantHeader },
		"tls-cert":                 func() { c.TLS.Cert = from.TLS.Cert },
		"tls-key":                  func() { c.TLS.Key = from.TLS.Key },
		"tls-client-ca":            func() { c.TLS.ClientCA = from.TLS.ClientCA },
		"trace-endpoint":           func() { c.Trace.Endpoint = from.Trace.Endpoint },
		"trace-headers":            func() { c.Trace.Headers, c.Trace.HeadersFile = settings.Secret(f.traceHeaders), "" },
		"trace-sample":             func() { c.Trace.Sample = from.Trace.Sample },
		"plan-window":              func() { c.Plan.Window = from.Plan.Window },
		"lame-duck":                func() { c.Timeouts.LameDuck = from.Timeouts.LameDuck },
		"drain":                    func() { c.Timeouts.Drain = from.Timeouts.Drain },
	} {
		if flags.Changed(name) {
			set()
		}
	}
	if err := f.events.apply(flags, c); err != nil {
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
	signal.Notify(hangup, syscall.SIGHUP) // on Windows nobody sends it
	defer signal.Stop(hangup)
	front, err := server.New(cfg, api, server.Options{Logger: logger, Live: live, Registry: registry, Tracer: api.Tracer(), Load: source.Load, Hangup: hangup})
	if err != nil {
		return err
	}
	api.Admin(front.Admin())
	// From the first signal on, the next one ends the process as if nobody listened for it; the server is told only then.
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

// gateway opens the listener for an Envoy gateway, if there is to be one, and serves it until ctx ends. What it returns waits for
// the end.
func (f *serveFlags) gateway(ctx context.Context, api *sidecar.API, cfg settings.Config, logger *slog.Logger) (wait func() error, err error) {
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
