package local

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func newSampler(t *testing.T, temperature, topP float64, seed int64) func([]float32) int32 {
	t.Helper()
	return testkit.Must(sampler(&temperature, &topP, &seed))(t)
}

// Tokens are drawn by softmax(logits/temperature), restricted to the smallest set that has topP: χ² with 4 degrees of freedom at most,
// which passes 18.5 once in a thousand draws of a seed; the seeds are fixed.
func TestSampleDistribution(t *testing.T) {
	logits := []float32{1, 3, 2, -1, 2.5, float32(math.Inf(-1))}
	for _, c := range []struct {
		temperature, topP float64
		left              []int
	}{
		{1, 1, []int{0, 1, 2, 3, 4}},
		{.5, 1, []int{0, 1, 2, 3, 4}},
		{3, 1, []int{0, 1, 2, 3, 4}},
		{1, .7, []int{1, 4}},    // 0.47 and 0.28 of the whole
		{1, .8, []int{1, 2, 4}}, // and 0.17
		{1, .01, []int{1}},
	} {
		weights, total := map[int]float64{}, 0.0
		for _, token := range c.left {
			weights[token] = math.Exp(float64(logits[token]) / c.temperature)
			total += weights[token]
		}
		const draws = 20_000
		sample, counts := newSampler(t, c.temperature, c.topP, 42), make([]float64, len(logits))
		for range draws {
			counts[sample(slices.Clone(logits))]++
		}
		chi := 0.0
		for token, count := range counts {
			want := draws * weights[token] / total
			if want == 0 && count > 0 {
				t.Errorf("%+v: token %d was drawn", c, token)
			} else if want > 0 {
				chi += (count - want) * (count - want) / want
			}
		}
		if chi > 18.5 {
			t.Errorf("%+v: χ² = %.1f, counts %v", c, chi, counts)
		}
	}
}

// The set that is drawn from is what sorting everything gives.
func TestNucleus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := rapid.SliceOfN(rapid.Float32Range(-20, 20), 1, 200).Draw(t, "logits")
		for range rapid.IntRange(0, 20).Draw(t, "equal") {
			logits = append(logits, logits[0])
		}
		topP := rapid.Float64Range(1e-6, .999999).Draw(t, "top_p")
		weights, sum := make([]choice, len(logits)), 0.0
		most := float64(slices.Max(logits))
		for i, v := range logits {
			weights[i] = choice{int32(i), math.Exp(float64(v) - most)}
			sum += weights[i].weight
		}
		n := nucleus{choices: slices.Clone(weights)}
		n.topP = topP
		got := n.cut(sum)
		slices.SortStableFunc(weights, func(a, b choice) int {
			if a.weight == b.weight {
				return 0
			} else if a.weight > b.weight {
				return -1
			}
			return 1
		})
		want := 0.0
		for i, c := range weights {
			if want += c.weight; want >= topP*sum {
				weights = weights[:i+1]
				break
			}
		}
		if !slices.Equal(n.choices, weights) || got != want {
			t.Fatalf("%v with %g, want %v with %g", n.choices, got, weights, want)
		}
	})
}

func TestSampleOddLogits(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, logits := range [][]float32{{0}, {nan, nan}, {-inf, -inf}, {inf, 0}, {nan, 1, 2}, {1e38, -1e38}} {
		for _, temperature := range []float64{0, 5e-324, 1, 100} {
			for _, topP := range []float64{5e-324, .5, 1} {
				if token := newSampler(t, temperature, topP, 1)(slices.Clone(logits)); int(token) >= len(logits) || token < 0 {
					t.Errorf("token %d of %v", token, logits)
				}
			}
		}
	}
	if token := greedy([]float32{1, 5, 5, 2}); token != 1 {
		t.Errorf("greedy takes token %d of two equal ones", token)
	}
	for _, bad := range []float64{-1, 101, math.NaN(), math.Inf(1)} {
		if _, err := sampler(&bad, nil, nil); !errors.Is(err, engines.ErrRefused) {
			t.Errorf("temperature %g: error %v", bad, err)
		}
	}
}

// However a text is cut into pieces, what is given out is what stands in front of the first stop text.
func TestCutter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]string{"a", "b", "é", "天"})
		word := func(least, most int, name string) string {
			return strings.Join(rapid.SliceOfN(letters, least, most).Draw(t, name), "")
		}
		pieces := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(letters, 0, 4).Draw(t, "piece"), "")
		}), 0, 12).Draw(t, "pieces")
		c := cutter{stops: []string{word(1, 4, "stop")}}
		if rapid.Bool().Draw(t, "another") {
			c.stops = append(c.stops, word(1, 1, "one letter"))
		}
		got, stopped := "", false
		for _, piece := range pieces {
			var text string
			text, stopped = c.next(piece)
			if got += text; stopped {
				break
			}
		}
		if !stopped {
			got += c.rest()
		}
		whole := strings.Join(pieces, "")
		if stopped != (strings.Contains(whole, c.stops[0]) || len(c.stops) > 1 && strings.Contains(whole, c.stops[1])) {
			t.Fatalf("stopped %v in %q by %q", stopped, whole, c.stops)
		}
		if !strings.HasPrefix(whole, got) || !stopped && got != whole {
			t.Fatalf("%q of %q", got, whole)
		}
		for _, stop := range c.stops {
			if strings.Contains(got, stop) {
				t.Fatalf("%q has %q", got, stop)
			}
		}
		if len(c.stops) == 1 && stopped && got != whole[:strings.Index(whole, c.stops[0])] {
			t.Fatalf("%q in front of %q in %q", got, c.stops[0], whole)
		}
	})
}

// A token of a vocabulary as that of SmolLM2.
func BenchmarkSample(b *testing.B) {
	logits := make([]float32, 49152)
	for i := range logits {
		logits[i] = float32(math.Sin(float64(i)*12.9898)) * 12
	}
	for name, topP := range map[string]float64{"all": 1, "top_p": .9} {
		b.Run(name, func(b *testing.B) {
			temperature, seed := 1.0, int64(1)
			sample, err := sampler(&temperature, &topP, &seed)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				sample(logits)
			}
		})
	}
}
