package eval

import "math"

// quantile is the p-quantile of the standard normal distribution.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// cumulative is the standard normal distribution function.
func cumulative(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
