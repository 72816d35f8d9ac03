package eval

import (
	"errors"
	"fmt"
	"math"
)

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
