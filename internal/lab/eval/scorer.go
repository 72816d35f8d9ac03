package eval

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ragpilot/ragpilot/engines"
)

// Scorer is the model under test. Its answers must not depend on chance: the same messages give the same text. Methods are
// called concurrently if [Run].Parallel is more than 1.
type Scorer interface {
	// Name says what answers.
	Name() string
	// Generate answers a chat greedily, in at most maxTokens tokens. Of the request, Messages, Blocks and Extra are set.
	Generate(ctx context.Context, req engines.Request, maxTokens int) (string, error)
}

// UsageScorer is a [Scorer] that reports what an answer took.
type UsageScorer interface {
	Scorer
	// GenerateUsage is Generate with what the engine reports of the answer.
	GenerateUsage(ctx context.Context, req engines.Request, maxTokens int) (string, engines.Usage, error)
}

// Forced is an answer that a model is made to give: it begins with Lead, whose likelihood does not matter, and goes on with
// Answer. Both are joined by one space if there is a Lead.
type Forced struct{ Lead, Answer string }

// LikelihoodScorer is a [Scorer] that measures how likely an answer is.
type LikelihoodScorer interface {
	Scorer
	// Score returns the natural logarithm of the probability of each token of the answer, given the messages, the lead and the
	// answer's tokens before it (teacher forcing). How many tokens there are depends on the forced answer alone, not on the
	// messages. At least one.
	Score(ctx context.Context, req engines.Request, forced Forced) (logProbs []float64, err error)
}

// DistributionScorer is a [Scorer] that gives the whole distribution.
type DistributionScorer interface {
	Scorer
	// Distribution returns, for each token of the answer, in the sense of [LikelihoodScorer], the natural logarithms of the
	// probabilities of all tokens of the vocabulary at its place: [answer tokens][vocabulary], each line a whole
	// distribution. The caller owns what it gets. answer are those of the answer's own tokens, as Score returns them; nil: ask Score.
	Distribution(ctx context.Context, req engines.Request, forced Forced) (answer []float64, logProbs [][]float32, err error)
}

// FromEngine makes a Scorer of any engine: it has answers only, so that reports have exact match and F1 but no likelihoods.
// Model may be empty. The engine is asked with temperature 0.
func FromEngine(engine engines.Engine, model string) UsageScorer {
	return &engineScorer{engine: engine, model: model}
}

type engineScorer struct {
	engine engines.Engine
	model  string
}

func (s *engineScorer) Name() string {
	if s.model == "" {
		return s.engine.Name()
	}
	return s.engine.Name() + ", model " + s.model
}

func (s *engineScorer) Generate(ctx context.Context, req engines.Request, maxTokens int) (string, error) {
	text, _, err := s.GenerateUsage(ctx, req, maxTokens)
	return text, err
}

// GenerateUsage implements [UsageScorer].
func (s *engineScorer) GenerateUsage(ctx context.Context, req engines.Request, maxTokens int) (string, engines.Usage, error) {
	zero := 0.0
	req.Model, req.MaxTokens, req.Temperature = s.model, maxTokens, &zero
	response, err := s.engine.Generate(ctx, req, nil)
	if err != nil {
		return "", engines.Usage{}, fmt.Errorf("%s: %w", s.engine.Name(), err)
	}
	return response.Text, response.Usage, nil
}

// meanNLL is the negative log likelihood per token.
func meanNLL(logProbs []float64) (float64, error) {
	if len(logProbs) == 0 {
		return 0, errors.New("log probabilities []: want one for each token of the answer")
	}
	sum := 0.0
	for _, x := range logProbs {
		sum -= x
	}
	if mean := sum / float64(len(logProbs)); !math.IsNaN(mean) && !math.IsInf(mean, 0) {
		return mean, nil
	}
	return 0, fmt.Errorf("log probabilities %v: want finite numbers", logProbs)
}

// divergence is KL(p ‖ q), per token, of two lists of distributions, given as natural logarithms.
func divergence(p, q [][]float32) (float64, error) {
	if len(p) == 0 || len(p) != len(q) {
		return 0, fmt.Errorf("distributions at %d and %d tokens: want one for each token of the answer, in every arm", len(p), len(q))
	}
	sum := 0.0
	for i := range p {
		if len(p[i]) != len(q[i]) {
			return 0, fmt.Errorf("distributions over %d and %d tokens", len(p[i]), len(q[i]))
		}
		for k, x := range p[i] {
			if w := math.Exp(float64(x)); w > 0 {
				sum += w * (float64(x) - float64(q[i][k]))
			}
		}
	}
	kl := sum / float64(len(p))
	if math.IsNaN(kl) || math.IsInf(kl, 0) {
		return 0, fmt.Errorf("divergence %v: want finite logarithms of probabilities", kl)
	}
	return math.Max(kl, 0), nil // rounding
}
