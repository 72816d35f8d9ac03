package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

// scorer makes the model under test from --engine. done gives back what it holds.
func (f *evalFlags) scorer(ctx context.Context) (scorer eval.Scorer, done func(), err error) {
	switch {
	case f.engine == "local":
		path, err := modelFile(ctx, f.model, os.Stderr)
		if err != nil {
			return nil, nil, fmt.Errorf("--model %q: %w", f.model, err)
		}
		engine, err := openLocal(ctx, path, f.local)
		if err != nil {
			return nil, nil, err
		}
		return newLocalScorer(engine), func() { _ = engine.Close() }, nil
	case f.simulated():
		return nil, nil, fmt.Errorf("--engine %s: want local or the URL of an engine; a simulator's answers say nothing of quality", f.engine)
	default:
		engine, err := f.open()
		if err != nil {
			return nil, nil, err
		}
		return eval.FromEngine(engine, f.model), func() { _ = engine.Close() }, nil
	}
}
