package load

import (
	"fmt"
	"math"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/figures"
)

// Sustained is the largest rate of one policy at which the 95th percentile of the time to the first token stays within
// a bound.
type Sustained struct {
	Policy   string           `json:"policy"`
	Arrivals string           `json:"arrivals"` // the kind
	Engine   string           `json:"engine"`
	Bound    float64          `json:"slo_ms"`
	Rates    []float64        `json:"rates"` // by seed
	Rate     figures.Interval `json:"rate"`
	Against  string           `json:"against"`  // the first policy
	VsFirst  figures.Interval `json:"vs_first"` // ratio of the rates, seed by seed
}

// findSteps bounds the doublings and halvings before a bisection, and findExact its relative width at the end.
const (
	findSteps = 20
	findExact = 0.005
)

// FindRate looks for the largest rate at which a run's 95th percentile of the time to the first token is at most bound:
// from start on it doubles or halves until it has one rate that does and one that does not, then bisects to half a
// percent. It supposes that higher rates are slower, which a finite run only is on the whole; what it returns does
// fulfil the bound. It is an error if no rate within a factor of a million does, or all do.
func FindRate(start float64, bound time.Duration, try func(rate float64) (Run, error)) (float64, error) {
	fits := func(rate float64) (bool, error) {
		run, err := try(rate)
		return err == nil && run.TTFT(0.95) <= bound, err
	}
	ok, err := fits(start)
	if err != nil {
		return 0, err
	}
	low, high := start, start // the last rate within the bound, and the last one beyond
	for n := 0; low == high; n++ {
		if n == findSteps {
			side := "above"
			if ok {
				side = "within"
			}
			return 0, fmt.Errorf("even at a rate of %.3g the 95th percentile of the time to the first token is %s %v", low, side, bound)
		}
		next := low * 2
		if !ok {
			next = low / 2
		}
		fit, err := fits(next)
		switch {
		case err != nil:
			return 0, err
		case fit == ok:
			low, high = next, next
		case fit:
			low = next
		default:
			high = next
		}
	}
	for high/low > 1+findExact {
		middle := math.Sqrt(low * high)
		ok, err := fits(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// Sustain takes the rates of one policy together, one for each seed, and compares them with the first policy's.
func Sustain(policy string, bound time.Duration, rates []float64, against string, first []float64) Sustained {
	ratios := make([]float64, len(rates))
	for i, r := range rates {
		ratios[i] = figures.Ratio(r, first[i])
	}
	return Sustained{
		Policy: policy, Bound: figures.Millis(bound), Rates: rates, Rate: figures.NewInterval(rates), Against: against,
		VsFirst: figures.NewInterval(ratios),
	}
}
