package eval

import "math"

// tango is the score interval of the difference of two paired shares (Tango 1998, Statistics in Medicine 17:891): of n
// rows, gains are right in the second arm only, and losses in the first only. Unlike a bootstrap it says something where both
// are few or none: with none of 100 rows a loss of 3.7 points is not excluded at 95 %.
func tango(gains, losses, n int, confidence float64) Interval {
	mean := float64(gains-losses) / float64(n)
	z := quantile((1 + confidence) / 2)
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
