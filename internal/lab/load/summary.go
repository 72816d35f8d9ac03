package load

import (
	"math"
	"slices"
	"time"
)

// Slices is the number of parts in which [Point].Progress follows a run.
const Slices = 10

// Interval is what the runs of several seeds measured: their mean, and the half width of the mean's 95 % confidence
// interval by Student's t distribution, 0 with one run.
type Interval struct {
	Mean float64 `json:"mean"`
	Half float64 `json:"half_95"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// Point is one policy at one load.
type Point struct {
	Policy    string     `json:"policy"`
	Arrivals  string     `json:"arrivals"`
	Level     float64    `json:"level"` // rate, or users
	Seeds     int        `json:"seeds"`
	Requests  int        `json:"requests"`
	Peak      Interval   `json:"peak_in_flight"`
	TTFT50    Interval   `json:"ttft_p50_ms"`
	TTFT95    Interval   `json:"ttft_p95_ms"`
	TTFT99    Interval   `json:"ttft_p99_ms"`
	Total50   Interval   `json:"latency_p50_ms"`
	Total95   Interval   `json:"latency_p95_ms"`
	Total99   Interval   `json:"latency_p99_ms"`
	Output    Interval   `json:"output_tokens_per_s"`
	Rate      Interval   `json:"requests_per_s"`
	Prompt    Interval   `json:"prompt_tokens"`
	Computed  Interval   `json:"computed_tokens"`
	Hit       Interval   `json:"hit_ratio"`
	HitKnown  bool       `json:"hit_known"`
	Progress  []Interval `json:"hit_ratio_progress"`
	Against   string     `json:"against"`                // the first policy
	OutputVs  Interval   `json:"output_tokens_vs_first"` // seed by seed
	TTFT95Vs  Interval   `json:"ttft_p95_vs_first"`      // seed by seed
	Simulated bool       `json:"simulated"`
	Engine    string     `json:"engine"`
	Think     string     `json:"think"`
}

// Summarise takes the runs of one policy at one load together, one for each seed, and compares each with the run of the
// first policy with the same seed.
func Summarise(runs, first []Run) Point {
	p := Point{
		Policy: runs[0].Policy, Arrivals: runs[0].Arrivals.String(), Level: runs[0].Arrivals.Level(), Against: first[0].Policy,
		Seeds: len(runs), Requests: len(runs[0].Sent), HitKnown: !slices.ContainsFunc(runs, func(r Run) bool { return !r.CachedKnown() }),
	}
	at := func(q float64, of func(Run, float64) time.Duration) Interval {
		return each(runs, func(_ int, r Run) float64 { return millis(of(r, q)) })
	}
	p.TTFT50, p.TTFT95, p.TTFT99 = at(0.5, Run.TTFT), at(0.95, Run.TTFT), at(0.99, Run.TTFT)
	p.Total50, p.Total95, p.Total99 = at(0.5, Run.Total), at(0.95, Run.Total), at(0.99, Run.Total)
	p.Peak = each(runs, func(_ int, r Run) float64 { return float64(r.Peak) })
	p.Output = each(runs, func(_ int, r Run) float64 { return r.OutputRate() })
	p.Rate = each(runs, func(_ int, r Run) float64 { return r.RequestRate() })
	p.Prompt = each(runs, func(_ int, r Run) float64 { prompt, _ := r.promptTokens(); return float64(prompt) })
	p.Computed = each(runs, func(_ int, r Run) float64 { prompt, cached := r.promptTokens(); return float64(prompt - cached) })
	p.Hit = each(runs, func(_ int, r Run) float64 { return r.HitRatio() })
	p.OutputVs = each(runs, func(i int, r Run) float64 { return ratio(r.OutputRate(), first[i].OutputRate()) })
	p.TTFT95Vs = each(runs, func(i int, r Run) float64 { return ratio(float64(r.TTFT(0.95)), float64(first[i].TTFT(0.95))) })
	for k := range Slices {
		p.Progress = append(p.Progress, each(runs, func(_ int, r Run) float64 { return r.Progress(Slices)[k] }))
	}
	return p
}

func each(runs []Run, of func(i int, r Run) float64) Interval {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = of(i, r)
	}
	return interval(values)
}

// student95 are the factors of a two-sided 95 % interval by Student's t distribution for 1, 2, … degrees of freedom.
var student95 = []float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
}

func interval(values []float64) Interval {
	n := len(values)
	if n == 0 {
		return Interval{}
	}
	out := Interval{Min: slices.Min(values), Max: slices.Max(values)}
	for _, v := range values {
		out.Mean += v / float64(n)
	}
	if n == 1 {
		return out
	}
	variance := 0.0
	for _, v := range values {
		variance += (v - out.Mean) * (v - out.Mean) / float64(n-1)
	}
	t := 1.960 + 2.5/float64(n-1) // near the table's end
	if n-2 < len(student95) {
		t = student95[n-2]
	}
	out.Half = t * math.Sqrt(variance/float64(n))
	return out
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
