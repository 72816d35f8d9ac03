package httpload

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/figures"
)

// CompareConfig describes a comparison. Config.Target is the one of interest, Against what it is compared with; Duration
// and WarmUp are those of both together.
type CompareConfig struct {
	Config
	Against *Target
	// Slice is how long one of them is loaded before it is the other's turn.
	Slice time.Duration
}

// Comparison is what two targets measured in turn.
type Comparison struct {
	Base    Report `json:"base"`
	Against Report `json:"against"`
	// Latency, TTFT and Service are differences of those in the reports, base less against.
	Latency []Difference `json:"latency_difference"`
	TTFT    []Difference `json:"ttft_difference"`
	Service []Difference `json:"service_difference"`
}

// Difference is how much longer one quantile of the base's times is. Times are in microseconds.
type Difference struct {
	Quantile float64 `json:"quantile"`
	// Pooled is the difference of the quantiles of all answers.
	Pooled float64 `json:"pooled_us"`
	// Pairs is the number of pairs of slices, one of each target and one right after the other, in which both had answers.
	// Median is the median of their differences, Low and High bound it with the probability Confidence if pairs are independent of
	// each other, whatever the distribution; Confidence is 0.95 or just above, and less with under six pairs.
	Pairs      int     `json:"pairs"`
	Median     float64 `json:"median_us"`
	Low        float64 `json:"low_us"`
	High       float64 `json:"high_us"`
	Confidence float64 `json:"confidence"`
}

// compared are the quantiles whose differences are reported.
var compared = []float64{0.5, 0.9, 0.99}

// side is one target of a comparison.
type side struct {
	target        *Target
	total         tally
	latency, ttft [][]time.Duration // of each pair, the compared quantiles; nil: no answers
	service       [][]time.Duration // the same
	span          time.Duration
}

// Compare loads two targets in turn, in short slices so that what else the machine does hits both: base, against,
// against, base, and so on. A slice begins when all answers of the one before are there. It ends early with ctx, whose cause
// it then returns.
func Compare(ctx context.Context, c CompareConfig) (Comparison, error) {
	config, err := c.withDefaults()
	if err != nil {
		return Comparison{}, err
	}
	if c.Against == nil || c.Slice <= 0 || 2*c.Slice > c.Duration {
		return Comparison{}, fmt.Errorf("slice %v: want a second target, and time for a slice of each in %v", c.Slice, c.Duration)
	}
	sides := []*side{{target: c.Target}, {target: c.Against}}
	r := runner{Config: config, ids: newIDs()}
	warm := int((c.WarmUp + 2*c.Slice - 1) / (2 * c.Slice))
	for pair := range warm + int(c.Duration/(2*c.Slice)) {
		for turn := range sides {
			s := sides[turn^pair&1]
			var t tally
			r.run(ctx, s.target, 0, c.Slice, &t)
			if ctx.Err() != nil {
				return Comparison{}, context.Cause(ctx)
			}
			if pair >= warm {
				s.add(&t, c.Slice)
			}
		}
	}
	base, against := sides[0], sides[1]
	return Comparison{
		Base:    base.total.report(base.target.Name, c.Load, base.span),
		Against: against.total.report(against.target.Name, c.Load, against.span),
		Latency: differences(&base.total.latency, &against.total.latency, base.latency, against.latency),
		TTFT:    differences(&base.total.ttft, &against.total.ttft, base.ttft, against.ttft),
		Service: differences(&base.total.service, &against.total.service, base.service, against.service),
	}, nil
}

func (s *side) add(t *tally, span time.Duration) {
	s.latency = append(s.latency, quantiles(&t.latency))
	s.ttft = append(s.ttft, quantiles(&t.ttft))
	s.service = append(s.service, quantiles(&t.service))
	s.span += span
	s.total.add(t)
}

func quantiles(h *Histogram) []time.Duration {
	if h.Count() == 0 {
		return nil
	}
	out := make([]time.Duration, len(compared))
	for i, q := range compared {
		out[i] = h.Quantile(q)
	}
	return out
}

// differences compares the quantiles of all answers, and those of each pair; none if a side has no answers.
func differences(base, against *Histogram, basePairs, againstPairs [][]time.Duration) []Difference {
	out := []Difference{}
	if base.Count() == 0 || against.Count() == 0 {
		return out
	}
	for i, q := range compared {
		d := Difference{Quantile: q, Pooled: figures.Micros(base.Quantile(q) - against.Quantile(q))}
		var pairs []float64
		for p := range basePairs {
			if basePairs[p] != nil && againstPairs[p] != nil {
				pairs = append(pairs, figures.Micros(basePairs[p][i]-againstPairs[p][i]))
			}
		}
		if d.Pairs = len(pairs); d.Pairs > 0 {
			d.Median, d.Low, d.High, d.Confidence = medianInterval(pairs)
		}
		out = append(out, d)
	}
	return out
}

// manyPairs is up to where 2 to the power of their negative number is no denormal.
const manyPairs = 1000

// medianInterval returns the median of values and the narrowest interval between two of them, as many from either end,
// that holds the median of their distribution with a probability of at least 0.95. That of n values between the k-th
// smallest and the k-th largest is 1 - 2·P(B < k) for B binomial of n and 1/2. With under six values it is all there is.
func medianInterval(values []float64) (median, low, high, confidence float64) {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	median = (v[(n-1)/2] + v[n/2]) / 2
	if n > manyPairs {
		rank := int(float64(n)/2 - 1.96*math.Sqrt(float64(n))/2 - 1) // by the normal distribution
		return median, v[rank], v[n-1-rank], 0.95
	}
	p := math.Exp2(-float64(n)) // P(B = k), first of 0
	below := p                  // P(B < k)
	k := 1
	for ; ; k++ {
		p *= float64(n-k+1) / float64(k)
		if below+p > 0.025 {
			break
		}
		below += p
	}
	return median, v[k-1], v[n-k], max(0, 1-2*below)
}
