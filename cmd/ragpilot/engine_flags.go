package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/model"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// engineFlags are the flags that name a real engine in place of the simulator.
type engineFlags struct {
	engine, model, apiKey, requestID string
	maxTokens                        int
}

func (f *engineFlags) register(flags *pflag.FlagSet, maxTokens int) {
	flags.StringVar(&f.engine, "engine", "sim", "`sim|URL`: the simulator, or the base URL of an OpenAI-compatible engine")
	flags.StringVar(&f.model, "model", "", "`MODEL` to ask a real engine for")
	flags.StringVar(&f.apiKey, "api-key", "", "`KEY` for a real engine; RAGPILOT_API_KEY is safer")
	flags.StringVar(&f.requestID, "request-id", "all",
		"how a real engine is told the request's ID: `all|header|none`; hosted services may refuse unknown members of the body and want header")
	flags.IntVar(&f.maxTokens, "max-tokens", maxTokens, "length of a real engine's answers in `TOKENS`")
}

// simulated reports whether no real engine was named.
func (f *engineFlags) simulated() bool { return f.engine == "sim" }

func (f *engineFlags) open() (*openai.Engine, error) {
	if f.maxTokens < 1 {
		return nil, fmt.Errorf("--max-tokens %d: want at least 1", f.maxTokens)
	}
	config := openai.Config{BaseURL: f.engine, Model: f.model, APIKey: f.apiKey}
	switch f.requestID {
	case "all":
	case "header":
		config.IDs = openai.IDHeader
	case "none":
		config.IDs = openai.IDNowhere
	default:
		return nil, fmt.Errorf("--request-id %q: want all, header or none", f.requestID)
	}
	engine, err := openai.New(config)
	if err != nil {
		return nil, fmt.Errorf("--engine: %w", err)
	}
	return engine, nil
}

// defaultModel is the model that is fetched if none is named.
const defaultModel = "smollm2"

// modelFile returns the path of a model: a file's own, or that of a model by name, which is fetched if it is not there.
// If progress is a terminal it shows how far that is, otherwise one line that it takes its time. Errors name the flag --model.
func modelFile(ctx context.Context, name string, progress io.Writer) (path string, err error) {
	name = cmp.Or(name, defaultModel)
	_, err = os.Stat(name)
	found, ok := model.Find(name)
	switch {
	case err == nil || strings.ContainsAny(name, `/\.`):
		path = name
	case ok:
		path, err = found, nil
	default:
		if known(name) && !terminal(progress) {
			fmt.Fprintf(progress, "fetching model %s\n", name)
		}
		path, err = pullModel(ctx, name, progress)
	}
	if err != nil {
		err = fmt.Errorf("--model %q: %w", name, err)
	}
	return path, err
}

// known reports whether there is a model of this name to be fetched.
func known(name string) bool {
	return slices.ContainsFunc(model.Models(), func(m model.Info) bool { return m.Name == name })
}

// pullModel fetches a model unless it is there, and returns its path.
func pullModel(ctx context.Context, name string, progress io.Writer) (string, error) {
	path, err := model.Pull(ctx, name, pullProgress(progress))
	if errors.Is(err, model.ErrNoTool) {
		return "", fmt.Errorf("%w; install Python with pip, or uv", err)
	}
	return path, err
}

// loadCost is for the pilots of all commands: what the local engine has in files is loaded for nearly nothing.
func loadCost() map[string]float64 {
	return map[string]float64{local.DiskTier: local.DiskCost, local.HostTier: local.DiskCost}
}

// registerFiles adds the flags for the files of a local engine's keys and values.
func registerFiles(flags *pflag.FlagSet, c *local.Config) {
	flags.StringVar(&c.CacheDir, "cache-dir", "",
		"`DIR` where a model in this process keeps what it computed, for later runs; its files hold the texts in another form; empty: nowhere")
	flags.Int64Var(&c.DiskBytes, "cache-disk", local.DefaultDiskBytes, "size in `BYTES` of all files in --cache-dir")
	flags.Int64Var(&c.HostBytes, "host-cache", 0,
		"`BYTES` of this program's memory for what has no room in a card's; 0: 4 GiB with a card, none without; 1: none")
	flags.StringVar(&c.DiskFormat, "cache-format", "f32", "`f32|f16|int8`: numbers in these files; f32 changes no answer, the others a little")
}

// registerDevice adds the flags for what computes.
func registerDevice(flags *pflag.FlagSet, device *string, memory *int64) {
	flags.StringVar(device, "device", local.DefaultDevice,
		"`auto|cpu|cuda:N`: what a model in this process computes on; auto: the first card, in a program built for cards, or the processor")
	flags.Int64Var(memory, "device-memory", 0, "`BYTES` of a card's memory that are used at most; 0: nine tenths of what is free")
}

// checkDevice refuses what no device can be, by the names of the flags.
func checkDevice(device string, memory int64) error {
	if err := gpu.CheckName(device); err != nil {
		return fmt.Errorf("--device: %w", err)
	}
	return checkLimits(limited{"device-memory", int(min(memory, 0)), 0})
}

// registerReuse adds the flags for what requests have in common.
func registerReuse(flags *pflag.FlagSet, c *local.Config) {
	flags.StringVar(&c.Reuse, "reuse", local.ReusePrefix,
		"`prefix|blocks|hybrid`: reuse the beginning of prompts, which changes no answer; or also blocks at any place, which does "+
			"(docs/block-reuse.md)")
	flags.Float64Var(&c.Recompute, "recompute", local.DefaultRecompute,
		"`PART` of reused blocks that is computed again, above 0 and up to 1; with --reuse blocks or hybrid")
}

// openLocal opens a model in this process and lets it answer once, so that what it reads from its file is in memory.
func openLocal(ctx context.Context, path string, config local.Config) (*local.Engine, error) {
	engine, err := openModel(path, config)
	if err != nil {
		return nil, err
	}
	hello := engines.Request{MaxTokens: 1, Messages: []engines.Message{{Role: engines.User, Content: strings.Repeat("Hello. ", 8)}}}
	if _, err := engine.Generate(ctx, hello, nil); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	engine.Clear()
	return engine, nil
}

// openModel opens a model in this process under the name of its file.
func openModel(path string, config local.Config) (*local.Engine, error) {
	config.Model, config.Served = path, strings.TrimSuffix(filepath.Base(path), ".gguf")
	return local.Open(config)
}

// slow returns why an engine takes long to answer; nil: it does not.
func slow(engine *local.Engine) error {
	if engine.Device() != "cpu" {
		return nil
	}
	return fast()
}

// fast returns nil if the processor answers in reasonable time, otherwise the reason.
func fast() error {
	if compute.Kernel() == "portable" {
		return errors.New("without vector instructions a model is too slow: use a processor of amd64 with AVX2")
	}
	return nil
}
