package quanttest_test

import (
	"math"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/nn/quant/quanttest"
)

func TestRandom(t *testing.T) {
	for _, format := range quant.Types() {
		const n = 1 << 13
		weights := make([]float32, n)
		quant.Dequantize(format, weights, quanttest.Random(format, n, .25, 1))
		sum, squares := 0.0, 0.0
		for _, w := range weights {
			sum, squares = sum+float64(w), squares+float64(w)*float64(w)
		}
		if mean, spread := sum/n, math.Sqrt(squares/n); math.Abs(mean) > .03 || math.Abs(spread-.25) > .02 {
			t.Errorf("%v: weights of %g ± %g, want 0 ± 0.25", format, mean, spread)
		}
	}
}
