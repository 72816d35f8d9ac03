package eval

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is an estimate with bounds between which the true value lies with the stated confidence.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Group is what is drawn as one in a resample: the rows of a conversation, which are not independent.
type Group struct {
	Sum  float64 // over its rows
	Rows float64
}

// Bootstrap says how intervals are made.
type Bootstrap struct {
	Resamples  int     // 10,000 are enough for two digits of a 95 % interval
	Seed       uint64  // of the resamples; the same seed gives the same intervals
	Confidence float64 // two-sided, for example 0.95
}

// Mean bounds the mean over rows by resampling groups (Efron and Tibshirani 1993): by percentiles of the resampled
// means (§13.3), and corrected for bias and acceleration (BCa, §14.3). O(resamples × groups). Without rows all is NaN.
func (b Bootstrap) Mean(groups []Group) (percentile, bca Interval) {
	var all Group
	for _, g := range groups {
		all.Sum += g.Sum
		all.Rows += g.Rows
	}
	mean := all.Sum / all.Rows
	if all.Rows == 0 {
		none := Interval{math.NaN(), math.NaN(), math.NaN()}
		return none, none
	}
	if !slices.ContainsFunc(groups, func(g Group) bool { return g.Sum != 0 }) {
		return Interval{}, Interval{} // so is every resample
	}
	means := b.resample(groups)
	slices.Sort(means)
	tail := (1 - b.Confidence) / 2
	percentile = Interval{mean, at(means, tail), at(means, 1-tail)}
	z0 := distuv.UnitNormal.Quantile(below(means, mean))
	accel := acceleration(groups, all)
	shifted := func(p float64) float64 {
		z := z0 + distuv.UnitNormal.Quantile(p)
		return at(means, distuv.UnitNormal.CDF(z0+z/(1-accel*z)))
	}
	return percentile, Interval{mean, shifted(tail), shifted(1 - tail)}
}

// resample returns the means of the resamples, in the order they were drawn.
func (b Bootstrap) resample(groups []Group) []float64 {
	var pcg rand.PCG
	pcg.Seed(b.Seed, 0)
	means := make([]float64, b.Resamples)
	n := uint64(len(groups)) // below 2^31, so that half of a random word draws one with a bias below n/2^32
	for i := range means {
		var sum, rows float64
		var word uint64
		for k := range groups {
			if k%2 == 0 {
				word = pcg.Uint64()
			}
			word = bits.RotateLeft64(word, 32)
			g := &groups[(word&math.MaxUint32)*n>>32]
			sum += g.Sum
			rows += g.Rows
		}
		means[i] = sum / rows
	}
	return means
}

// at is the p-quantile of sorted values.
func at(sorted []float64, p float64) float64 {
	x := p * float64(len(sorted)-1)
	i := min(max(int(x), 0), len(sorted)-1)
	j := min(i+1, len(sorted)-1)
	return sorted[i] + (x-float64(i))*(sorted[j]-sorted[i])
}

// below is the share of sorted values below x, with half of those that are x; never 0 or 1.
func below(sorted []float64, x float64) float64 {
	low, _ := slices.BinarySearch(sorted, x)
	high := low
	for high < len(sorted) && sorted[high] == x {
		high++
	}
	n := float64(len(sorted))
	return min(max((float64(low)+float64(high))/2/n, 0.5/n), 1-0.5/n)
}

// acceleration is BCa's a, from the means without one group each (eq. 14.15).
func acceleration(groups []Group, all Group) float64 {
	if len(groups) < 2 {
		return 0
	}
	without := make([]float64, len(groups))
	mean := 0.0
	for i, g := range groups {
		without[i] = (all.Sum - g.Sum) / (all.Rows - g.Rows)
		mean += without[i] / float64(len(groups))
	}
	var squares, cubes float64
	for _, x := range without {
		d := mean - x
		squares += d * d
		cubes += d * d * d
	}
	if squares == 0 {
		return 0
	}
	return cubes / (6 * math.Pow(squares, 1.5))
}

// tango is the score interval of the difference of two paired shares (Tango 1998, Statistics in Medicine 17:891): of n
// rows, gains are right in the second arm only, and losses in the first only. Unlike a bootstrap it says something where both
// are few or none: with none of 100 rows a loss of 3.7 points is not excluded at 95 %.
func tango(gains, losses, n int, confidence float64) Interval {
	mean := float64(gains-losses) / float64(n)
	z := distuv.UnitNormal.Quantile((1 + confidence) / 2)
	return Interval{
		Mean: mean,
		Low:  root(-1, mean, func(d float64) bool { return score(gains, losses, n, d) > z }),
		High: root(mean, 1, func(d float64) bool { return score(gains, losses, n, d) > -z }),
	}
}

// score is Tango's statistic of the hypothesis that the difference is d.
func score(gains, losses, n int, d float64) float64 {
	b, c, m := float64(gains), float64(losses), float64(n)
	linear := -b - c + (2*m-b+c)*d
	q := (math.Sqrt(max(0, linear*linear+8*m*c*d*(1-d))) - linear) / (4 * m)
	variance := m * (2*q + d*(1-d))
	if over := b - c - m*d; variance > 0 {
		return over / math.Sqrt(variance)
	} else if over != 0 {
		return math.Copysign(math.Inf(1), over)
	}
	return 0
}

// root returns where a condition that holds at low, and not at high, ceases to hold.
func root(low, high float64, holds func(float64) bool) float64 {
	for range 60 {
		if mid := (low + high) / 2; holds(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}
