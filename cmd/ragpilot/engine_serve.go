package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/publish"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/server"
)

func newEngine() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Run the local engine by itself",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newEngineServe())
	return cmd
}

// engineServeFlags are the flags of engine serve.
type engineServeFlags struct {
	config local.Config
	events publish.Config

	model, listen string
	contexts      []string
	drain         time.Duration
}

func newEngineServe() *cobra.Command {
	f := &engineServeFlags{}
	cmd := newCommand("serve", "Serve the local engine over HTTP, as an inference server would",
		`Serve runs a small language model on this machine's processor and answers OpenAI's API for completions, with the
tokenizer, the metrics and the cache events of a vLLM server: what talks to one can be tried without a GPU. It is
not a fast engine. Without keys and without TLS: listen where you trust all. SIGTERM lets running answers end, a second one does not.`,
		f.run)
	f.register(cmd.Flags())
	return cmd
}

func (f *engineServeFlags) register(flags *pflag.FlagSet) {
	c, e := &f.config, &f.events
	flags.StringVar(&f.model, "model", defaultModel,
		"`FILE|NAME`: a GGUF file, or a model's name, which is fetched if it is not there")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8000", "serve on `HOST:PORT`; port 0 takes a free one")
	flags.StringVar(&c.Served, "served-name", "", "`NAME` that requests ask for; empty: the model's name, or its file's")
	flags.IntVar(&c.Threads, "threads", 0, "`N` threads that compute; 0: one for each processor")
	registerDevice(flags, &c.Device, &c.DeviceBytes)
	flags.Int64Var(&c.CacheBytes, "cache-bytes", local.DefaultCacheBytes, "memory for the prefix cache in `BYTES`")
	registerFiles(flags, c)
	registerReuse(flags, c)
	flags.StringArrayVar(&f.contexts, "context", nil,
		"`NAME=FILE` of a compressed context (ragpilot compress) that requests may name; may be given several times")
	flags.BoolVar(&c.DiskSalted, "cache-salted", false, "keep in --cache-dir what requests with a cache salt computed, too")
	flags.IntVar(&c.MaxTokens, "max-tokens", local.DefaultMaxTokens, "length in `TOKENS` of a chat's answer whose request does not say")
	flags.BoolVar(&c.NoThinking, "no-thinking", false, "a model of Qwen 3 answers without thinking first")
	flags.IntVar(&c.Running, "running", local.DefaultRunning, "`N` requests that are computed at a time; others wait")
	flags.StringVar(&e.Endpoint, "kv-events", "",
		"publish cache events at `ENDPOINT`, to listen on: tcp://HOST:PORT or ipc://PATH; empty: off")
	flags.StringVar(&e.Replay, "kv-replay", "", "`ENDPOINT` where past events can be asked for; empty: nowhere")
	flags.StringVar(&e.Topic, "kv-topic", "", "`TOPIC` of the events; empty: kv@HOST:PORT@NAME")
	flags.IntVar(&e.Buffer, "kv-buffer", publish.DefaultBuffer, "`N` batches of events that are kept for --kv-replay")
	flags.DurationVar(&f.drain, "drain", 10*time.Second, "`TIME` that running answers get to end")
}

// name is what the model is called: --served-name, or the name of its file.
func (f *engineServeFlags) name() string {
	return cmp.Or(f.config.Served, strings.TrimSuffix(filepath.Base(f.model), ".gguf"))
}

// check refuses numbers by the names of their flags.
func (f *engineServeFlags) check() error {
	if err := checkLimits(limited{"threads", f.config.Threads, 0}, limited{"cache-bytes", int(min(f.config.CacheBytes, 0)), 0},
		limited{"cache-disk", int(min(f.config.DiskBytes, 0)), 0},
		limited{"host-cache", int(min(f.config.HostBytes, 0)), 0},
		limited{"max-tokens", f.config.MaxTokens, 0},
		limited{"running", f.config.Running, 0},
		limited{"kv-buffer", f.events.Buffer, 0}); err != nil {
		return err
	}
	if err := checkDevice(f.config.Device, f.config.DeviceBytes); err != nil {
		return err
	}
	if f.drain < 0 {
		return fmt.Errorf("--drain %v: want at least 0", f.drain)
	}
	return nil
}

func (f *engineServeFlags) run(cmd *cobra.Command) (err error) {
	ctx, out, log := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := f.check(); err != nil {
		return err
	}
	if f.events.Replay != "" && f.events.Endpoint == "" {
		return fmt.Errorf("--kv-replay %s: wants --kv-events", f.events.Replay)
	}
	if f.config.Contexts, err = contexts(f.contexts); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(log, nil))
	f.model = cmp.Or(f.model, defaultModel) // the variable may be set to nothing
	f.config.Served = f.name()
	if f.config.Model, err = modelFile(ctx, f.model, log); err != nil {
		return err
	}
	listener, err := listen(ctx, "--listen", f.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	options := server.Config{Version: "ragpilot " + cmp.Or(version, "devel"), Logger: logger}
	if f.events.Endpoint != "" {
		publisher, err := f.publish(ctx, listener.Addr(), logger)
		if err != nil {
			return err
		}
		defer publisher.Close()
		options.Events = publisher
	}
	engine, err := local.Open(f.config)
	if errors.Is(err, local.ErrCacheTooSmall) {
		return fmt.Errorf("--cache-bytes %d: %w", f.config.CacheBytes, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	f.announce(out, logger, engine, options.Events, listener.Addr())
	if err := f.serve(ctx, listener, server.New(engine, options), logger); err != nil {
		return err
	}
	s := engine.Stats()
	fmt.Fprintf(out, "%d of %d prompt tokens from the cache, %d tokens generated, %d blocks evicted\n", s.HitTokens, s.QueriedTokens,
		s.GeneratedTokens, s.Evictions)
	return nil
}

// publish opens the sockets for cache events and has the engine publish.
func (f *engineServeFlags) publish(ctx context.Context, at net.Addr, logger *slog.Logger) (*publish.Publisher, error) {
	f.events.Topic = cmp.Or(f.events.Topic, "kv@"+at.String()+"@"+f.config.Served)
	publisher, err := publish.Listen(ctx, f.events)
	if err != nil {
		return nil, fmt.Errorf("--kv-events, --kv-replay: %w", err)
	}
	f.config.OnCache = func(events []kvevents.Event) {
		if err := publisher.Publish(events); err != nil {
			logger.Error("cache events were not published", "error", err)
		}
	}
	return publisher, nil
}

// announce says what is served and where.
func (f *engineServeFlags) announce(out io.Writer, logger *slog.Logger, engine *local.Engine, publisher *publish.Publisher, at net.Addr) {
	for _, w := range engine.Warnings() {
		logger.Warn("model", "model", f.config.Model, "warning", w)
	}
	if err := slow(engine); err != nil {
		logger.Warn("this will be slow", "reason", err)
	}
	fmt.Fprintf(out, "%s: %d tokens of prompt and answer, %d cache blocks\n", engine.Name(), engine.Context(), engine.Stats().Blocks)
	for _, c := range engine.Contexts() {
		fmt.Fprintf(out, "context %s: %d slots of %d tokens, for: %s\n", c.Name, c.Slots, c.Tokens, c.Task)
	}
	if publisher != nil {
		c := publisher.Config()
		fmt.Fprintf(out, "cache events at %s, replay at %s\n", c.Endpoint, cmp.Or(c.Replay, "no address"))
	}
	fmt.Fprintf(out, "listening on http://%s\n", at)
}

// serve answers until ctx ends, and then lets running answers end, for a time. Meanwhile connections are taken, so that
// health checks are still answered.
func (f *engineServeFlags) serve(ctx context.Context, listener net.Listener, api *server.Server, logger *slog.Logger) error {
	quiet := slog.NewLogLogger(logger.Handler(), slog.LevelDebug) // what net/http logs is about single connections
	web := &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: quiet}
	return serveUntil(ctx, listener, web, func() {
		signal.Reset(os.Interrupt, syscall.SIGTERM) // the next one ends the process
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.drain)
		defer cancel()
		defer time.AfterFunc(f.drain+graceTime, func() { _ = web.Close() }).Stop() // for clients that do not read their answers
		if err := api.Shutdown(grace); err != nil {
			logger.Warn("answers were cut short", "after", f.drain)
		}
	})
}
