package load

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/figures"
)

// Slices is the number of parts in which [Point].Progress follows a run.
const Slices = 10

// Point is one policy at one load.
type Point struct {
	Policy     string             `json:"policy"`
	Arrivals   string             `json:"arrivals"`
	Level      float64            `json:"level"` // rate, or users
	Seeds      int                `json:"seeds"`
	Requests   int                `json:"requests"`
	Peak       figures.Interval   `json:"peak_in_flight"`
	TTFTMean   figures.Interval   `json:"ttft_mean_ms"`
	TTFT50     figures.Interval   `json:"ttft_p50_ms"`
	TTFT95     figures.Interval   `json:"ttft_p95_ms"`
	TTFT99     figures.Interval   `json:"ttft_p99_ms"`
	Total50    figures.Interval   `json:"latency_p50_ms"`
	Total95    figures.Interval   `json:"latency_p95_ms"`
	Total99    figures.Interval   `json:"latency_p99_ms"`
	Output     figures.Interval   `json:"output_tokens_per_s"`
	Rate       figures.Interval   `json:"requests_per_s"`
	Prompt     figures.Interval   `json:"prompt_tokens"`
	Computed   figures.Interval   `json:"computed_tokens"`
	Hit        figures.Interval   `json:"hit_ratio"`
	HitKnown   bool               `json:"hit_known"`
	Progress   []figures.Interval `json:"hit_ratio_progress"`
	Against    string             `json:"against"`                // the first policy
	OutputVs   figures.Interval   `json:"output_tokens_vs_first"` // seed by seed
	TTFT95Vs   figures.Interval   `json:"ttft_p95_vs_first"`      // seed by seed
	TTFTMeanVs figures.Interval   `json:"ttft_mean_vs_first"`     // seed by seed
	RateVs     figures.Interval   `json:"requests_vs_first"`      // seed by seed
	Stall      figures.Interval   `json:"stall"`                  // share of the time in which steps of a simulated engine wait for loading
	Loaded     figures.Interval   `json:"loaded_mtokens"`         // millions of tokens that a simulated engine loaded from its host
	Simulated  bool               `json:"simulated"`
	Engine     string             `json:"engine"`
	Think      string             `json:"think"`
}

// Summarise takes the runs of one policy at one load together, one for each seed, and compares each with the run of the
// first policy with the same seed.
func Summarise(runs, first []Run) Point {
	p := Point{
		Policy: runs[0].Policy, Arrivals: runs[0].Arrivals.String(), Level: runs[0].Arrivals.Level(), Against: first[0].Policy,
		Seeds: len(runs), Requests: len(runs[0].Sent), HitKnown: !slices.ContainsFunc(runs, func(r Run) bool { return !r.CachedKnown() }),
	}
	at := func(q float64, of func(Run, float64) time.Duration) figures.Interval {
		return each(runs, func(_ int, r Run) float64 { return figures.Millis(of(r, q)) })
	}
	p.TTFTMean = each(runs, func(_ int, r Run) float64 { return figures.Millis(r.MeanTTFT()) })
	p.TTFTMeanVs = each(runs, func(i int, r Run) float64 { return figures.Ratio(float64(r.MeanTTFT()), float64(first[i].MeanTTFT())) })
	p.RateVs = each(runs, func(i int, r Run) float64 { return figures.Ratio(r.RequestRate(), first[i].RequestRate()) })
	p.Stall = each(runs, func(_ int, r Run) float64 { return figures.Ratio(r.Transfers.Stall.Seconds(), r.Span().Seconds()) })
	p.Loaded = each(runs, func(_ int, r Run) float64 { return float64(r.Transfers.Host) / 1e6 })
	p.TTFT50, p.TTFT95, p.TTFT99 = at(0.5, Run.TTFT), at(0.95, Run.TTFT), at(0.99, Run.TTFT)
	p.Total50, p.Total95, p.Total99 = at(0.5, Run.Total), at(0.95, Run.Total), at(0.99, Run.Total)
	p.Peak = each(runs, func(_ int, r Run) float64 { return float64(r.Peak) })
	p.Output = each(runs, func(_ int, r Run) float64 { return r.OutputRate() })
	p.Rate = each(runs, func(_ int, r Run) float64 { return r.RequestRate() })
	p.Prompt = each(runs, func(_ int, r Run) float64 { prompt, _ := r.promptTokens(); return float64(prompt) })
	p.Computed = each(runs, func(_ int, r Run) float64 { prompt, cached := r.promptTokens(); return float64(prompt - cached) })
	p.Hit = each(runs, func(_ int, r Run) float64 { return r.HitRatio() })
	p.OutputVs = each(runs, func(i int, r Run) float64 { return figures.Ratio(r.OutputRate(), first[i].OutputRate()) })
	p.TTFT95Vs = each(runs, func(i int, r Run) float64 { return figures.Ratio(float64(r.TTFT(0.95)), float64(first[i].TTFT(0.95))) })
	for k := range Slices {
		p.Progress = append(p.Progress, each(runs, func(_ int, r Run) float64 { return r.Progress(Slices)[k] }))
	}
	return p
}

func each(runs []Run, of func(i int, r Run) float64) figures.Interval {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = of(i, r)
	}
	return figures.NewInterval(values)
}

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
