package eval

import (
	"math"
)

// Verdict says whether an interval excludes a loss of the margin.
type Verdict string

// The verdicts. With a 95 % interval, an arm that loses the margin is called not inferior in 2.5 % of all runs, and an arm
// that loses more in fewer.
const (
	// NotInferior: the interval excludes a loss of the margin or more.
	NotInferior Verdict = "not inferior"
	// Inferior: the interval excludes a loss smaller than the margin.
	Inferior Verdict = "inferior"
	// Undecided: the interval excludes neither; more rows are needed.
	Undecided Verdict = "undecided"
)

// MinGroups is the number of conversations below which there is no verdict: percentiles of so few do not hold what they
// promise, and Tango's interval takes rows as independent.
const MinGroups = 30

// MinExact is the share of plain's rows that must be right for a verdict: where hardly anything is right, nothing can be lost.
const MinExact = 0.1

// judge takes the difference, arm less plain, with gains positive. All intervals must agree.
func judge(margin float64, of ...Interval) Verdict {
	low, high := math.Inf(1), math.Inf(-1)
	for _, i := range of {
		low, high = math.Min(low, i.Low), math.Max(high, i.High)
	}
	switch { // NaN is none of both
	case low > -margin:
		return NotInferior
	case high < -margin:
		return Inferior
	}
	return Undecided
}
