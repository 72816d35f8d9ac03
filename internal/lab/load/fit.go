package load

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/jsonlines"
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

// leastSquares solves rows·x = 1 for the unknowns named, with columns scaled to length 1.
func leastSquares(rows [][]float64, unknowns []int) ([]float64, error) {
	if len(rows) < len(unknowns) {
		return nil, fmt.Errorf("%d cases do not determine %d constants", len(rows), len(unknowns))
	}
	a, ones := mat.NewDense(len(rows), len(unknowns), nil), mat.NewVecDense(len(rows), slices.Repeat([]float64{1}, len(rows)))
	for j, k := range unknowns {
		norm := columnNorm(rows, k)
		if norm == 0 {
			return nil, fmt.Errorf("no sample depends on constant %d", k)
		}
		for i, row := range rows {
			a.Set(i, j, row[k]/norm)
		}
	}
	var x mat.VecDense
	if err := x.SolveVec(a, ones); err != nil {
		return nil, fmt.Errorf("the samples do not determine the constants: %w", err)
	}
	out := x.RawVector().Data
	for j, k := range unknowns {
		out[j] /= columnNorm(rows, k)
	}
	return out, nil
}

// ReadSamples reads a file of samples, one JSON object in each line.
func ReadSamples(path string) ([]Sample, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Sample
	err = jsonlines.Read(f, bufio.MaxScanTokenSize, func(_ int, line []byte) error {
		var s Sample
		err := json.Unmarshal(line, &s)
		out = append(out, s)
		return err
	})
	if err != nil {
		err = fmt.Errorf("%s, %w", path, err)
	}
	return out, err
}
