package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

// scorer makes the model under test from --engine. done closes it.
func (f *evalFlags) scorer(ctx context.Context) (scorer eval.Scorer, done func(), err error) {
	switch {
	case f.engine == "local":
		path, err := modelFile(ctx, f.model, os.Stderr)
		if err != nil {
			return nil, nil, err
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

// localScorer is a model in this process under test, with likelihoods.
type localScorer struct {
	eval.UsageScorer
	engine *local.Engine
}

func newLocalScorer(engine *local.Engine) *localScorer {
	return &localScorer{eval.FromEngine(engine, ""), engine}
}

var (
	_ eval.LikelihoodScorer   = (*localScorer)(nil)
	_ eval.DistributionScorer = (*localScorer)(nil)
)

// Score implements [eval.LikelihoodScorer].
func (s *localScorer) Score(ctx context.Context, req engines.Request, forced eval.Forced) ([]float64, error) {
	text, skip := s.answer(forced)
	score, err := s.engine.Score(ctx, req, text, nil)
	if err != nil {
		return nil, err
	}
	return score.LogProbs[skip:], nil
}

// Distribution implements [eval.DistributionScorer].
func (s *localScorer) Distribution(ctx context.Context, req engines.Request, forced eval.Forced) (answer []float64, all [][]float32,
	err error,
) {
	text, skip := s.answer(forced)
	score, err := s.engine.Score(ctx, req, text, func(i int, logits []float32) {
		if i >= skip {
			all = append(all, local.LogProbs(logits))
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return score.LogProbs[skip:], all, nil
}

// answer joins a forced answer and returns how many tokens its lead has. A space begins a token, so that the lead's
// tokens are the same with the answer behind it.
func (s *localScorer) answer(forced eval.Forced) (text string, skip int) {
	if forced.Lead == "" {
		return forced.Answer, 0
	}
	return forced.Lead + " " + forced.Answer, s.engine.Count(forced.Lead)
}
