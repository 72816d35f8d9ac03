package load

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/engines/sim"
)

// Sample is one measured time of a real engine that did nothing else meanwhile.
type Sample struct {
	// Case names the setup; samples of one case are repetitions. Those whose name begins with "decode" are the time
	// between two tokens of Requests running together, all others are the time to the first token of one request.
	Case     string  `json:"case"`
	Requests int     `json:"requests"`
	Prompt   int     `json:"prompt_tokens"` // of each request
	Cached   int     `json:"cached_tokens"` // of each prompt
	Output   int     `json:"output_tokens"` // of each request
	Millis   float64 `json:"ms"`
}

// Residual is how far a fitted cost is from the median of a case.
type Residual struct {
	Case     string  `json:"case"`
	Samples  int     `json:"samples"`
	Measured float64 `json:"measured_ms"`
	Fitted   float64 `json:"fitted_ms"`
}

// Relative returns the error as a share of what was measured.
func (r Residual) Relative() float64 { return r.Fitted/r.Measured - 1 }

// Fit finds the cost that is nearest to the medians of the cases, by least squares of the relative errors, with no
// constant below 0. Steps of the engine compute at most batchTokens.
func Fit(samples []Sample, batchTokens int) (sim.StepCost, []Residual, error) {
	var names []string
	cases := map[string][]Sample{}
	for _, s := range samples {
		if s.Millis <= 0 || s.Requests < 1 || s.Prompt <= s.Cached {
			return sim.StepCost{}, nil, fmt.Errorf("sample of case %q makes no sense: %+v", s.Case, s)
		}
		if len(cases[s.Case]) == 0 {
			names = append(names, s.Case)
		}
		cases[s.Case] = append(cases[s.Case], s)
	}
	rows := make([][]float64, 0, len(names))
	residuals := make([]Residual, 0, len(names))
	for _, name := range names {
		m := median(cases[name])
		row := features(m, batchTokens)
		for i := range row {
			row[i] /= m.Millis * 1e6
		}
		rows = append(rows, row)
		residuals = append(residuals, Residual{Case: name, Samples: len(cases[name]), Measured: m.Millis})
	}
	x, err := nonNegative(rows)
	if err != nil {
		return sim.StepCost{}, nil, err
	}
	for i, row := range rows {
		fitted := 0.0
		for k, v := range row {
			fitted += v * x[k]
		}
		residuals[i].Fitted = fitted * residuals[i].Measured
	}
	return sim.StepCost{
		Step: x[0], Prefill: x[1], PrefillContext: x[2], Decode: x[3], DecodeContext: x[4], Arrival: x[5], ArrivalToken: x[6],
	}, residuals, nil
}

// median returns the sample in the middle.
func median(samples []Sample) Sample {
	sorted := slices.SortedStableFunc(slices.Values(samples), func(a, b Sample) int { return cmp.Compare(a.Millis, b.Millis) })
	return sorted[(len(sorted)-1)/2]
}

// features are what the constants of a cost are multiplied with.
func features(s Sample, batchTokens int) []float64 {
	if strings.HasPrefix(s.Case, "decode") {
		context := float64(s.Requests) * (float64(s.Prompt) + float64(s.Output)/2)
		return []float64{1, 0, 0, float64(s.Requests), context, 0, 0}
	}
	w := sim.PrefillWork(s.Prompt, s.Cached, batchTokens)
	return []float64{float64(w.Steps), float64(w.PrefillTokens), float64(w.PrefillContext), 0, 0, 1, float64(s.Prompt)}
}

// nonNegative solves rows·x = 1 for x ≥ 0 by least squares: the most negative unknown is fixed at 0 until none is left.
func nonNegative(rows [][]float64) ([]float64, error) {
	if len(rows) == 0 {
		return nil, errors.New("nothing to fit")
	}
	free := make([]int, len(rows[0]))
	for i := range free {
		free[i] = i
	}
	for {
		y, err := leastSquares(rows, free)
		if err != nil {
			return nil, err
		}
		worst := -1
		for i, v := range y {
			if v < 0 && (worst < 0 || v*columnNorm(rows, free[i]) < y[worst]*columnNorm(rows, free[worst])) {
				worst = i
			}
		}
		if worst < 0 {
			x := make([]float64, len(rows[0]))
			for i, k := range free {
				x[k] = y[i]
			}
			return x, nil
		}
		free = slices.Delete(free, worst, worst+1)
	}
}

func columnNorm(rows [][]float64, k int) float64 {
	sum := 0.0
	for _, row := range rows {
		sum += row[k] * row[k]
	}
	return math.Sqrt(sum)
}

// leastSquares solves the normal equations of rows·x = 1 for the unknowns named, with columns scaled to length 1.
func leastSquares(rows [][]float64, unknowns []int) ([]float64, error) {
	n := len(unknowns)
	a := make([][]float64, n) // with the right side as last column
	for i, k := range unknowns {
		norm := columnNorm(rows, k)
		if norm == 0 {
			return nil, fmt.Errorf("no sample tells constant %d", k)
		}
		a[i] = make([]float64, n+1)
		for _, row := range rows {
			for j, l := range unknowns {
				a[i][j] += row[k] / norm * row[l] / columnNorm(rows, l)
			}
			a[i][n] += row[k] / norm
		}
	}
	for i := range n {
		pivot := i
		for r := i + 1; r < n; r++ {
			if math.Abs(a[r][i]) > math.Abs(a[pivot][i]) {
				pivot = r
			}
		}
		a[i], a[pivot] = a[pivot], a[i]
		if math.Abs(a[i][i]) < 1e-9 {
			return nil, fmt.Errorf("the samples do not tell constant %d from the others", unknowns[i])
		}
		for r := range n {
			if r == i {
				continue
			}
			f := a[r][i] / a[i][i]
			for c := i; c <= n; c++ {
				a[r][c] -= f * a[i][c]
			}
		}
	}
	x := make([]float64, n)
	for i, k := range unknowns {
		x[i] = a[i][n] / a[i][i] / columnNorm(rows, k)
	}
	return x, nil
}
