package eval

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Power plans a comparison of paired answers, right or wrong, whose verdict is "not inferior" if the interval of the difference
// excludes a loss of Margin. Shares are between 0 and 1.
//
// The number of rows is that of the Wald test on paired differences, n = (z₁₋α + z₁₋β)² (ψ − d²) / (margin + d)² with the share ψ of
// rows that are right in one arm only and the true difference d (Lu and Bean 1995; Liu, Hsueh, Hsieh and Chen 2002, Statistics
// in Medicine 21:231). Connor's (1987, Biometrics 43:207) for a test against no difference, with the margin as the loss to be
// excluded, is within a few rows of it.
type Power struct {
	// Discordance is the share of rows that are right in exactly one of the two arms.
	Discordance float64
	// Difference is the true one, arm less plain; 0: none.
	Difference float64
	// Margin is the loss to be excluded, for example 0.02.
	Margin float64
	// Alpha is the one-sided risk to call a loss of Margin not inferior: 0.025 belongs to a two-sided 95 % interval.
	Alpha float64
	// Power is the wanted chance of the verdict "not inferior", for example 0.8.
	Power float64
}

func (p Power) check() error {
	switch {
	case !(p.Discordance > 0 && p.Discordance <= 1):
		return fmt.Errorf("discordance %v: want more than 0 and at most 1", p.Discordance)
	case !(math.Abs(p.Difference) <= p.Discordance):
		return fmt.Errorf("difference %v: larger than the discordance %v", p.Difference, p.Discordance)
	case !(p.Margin > 0 && p.Margin < 1):
		return fmt.Errorf("margin %v: want more than 0 and less than 1", p.Margin)
	case !(p.Margin+p.Difference > 0):
		return fmt.Errorf("difference %v: a loss of the margin %v or more cannot be shown not inferior", p.Difference, p.Margin)
	case !(p.Alpha > 0 && p.Alpha < 0.5):
		return fmt.Errorf("alpha %v: want more than 0 and less than 0.5", p.Alpha)
	}
	return nil
}

// Rows returns the number of rows that are needed. An error names the field that makes no sense.
func (p Power) Rows() (int, error) {
	if err := p.check(); err != nil {
		return 0, err
	}
	if !(p.Power > p.Alpha && p.Power < 1) {
		return 0, fmt.Errorf("power %v: want more than alpha %v and less than 1", p.Power, p.Alpha)
	}
	z := distuv.UnitNormal.Quantile(1-p.Alpha) + distuv.UnitNormal.Quantile(p.Power)
	gap := p.Margin + p.Difference
	return int(math.Ceil(z * z * (p.Discordance - p.Difference*p.Difference) / (gap * gap))), nil
}

// Of returns the power that a number of rows has; the field Power is not used.
func (p Power) Of(rows int) (float64, error) {
	if err := p.check(); err != nil {
		return 0, err
	}
	if rows < 1 {
		return 0, fmt.Errorf("rows %d: want at least 1", rows)
	}
	sd := math.Sqrt((p.Discordance - p.Difference*p.Difference) / float64(rows))
	if sd == 0 {
		return 1, nil
	}
	return distuv.UnitNormal.CDF((p.Margin+p.Difference)/sd - distuv.UnitNormal.Quantile(1-p.Alpha)), nil
}

// MeanPower plans a comparison of means over rows, whose verdict is "not inferior" if the interval excludes a rise of Margin: the
// normal approximation, n = (z₁₋α + z₁₋β)² SD² / Margin² if there is no difference.
type MeanPower struct {
	SD     float64 // of a row's difference, more than 0; with rows that belong together, √n times the standard error of the mean
	Margin float64 // more than 0, in the same unit
	Alpha  float64 // one-sided, as in [Power]
	Power  float64 // wanted
}

// Rows returns the number of rows that are needed.
func (p MeanPower) Rows() int {
	z := (distuv.UnitNormal.Quantile(1-p.Alpha) + distuv.UnitNormal.Quantile(p.Power)) * p.SD / p.Margin
	return int(math.Ceil(z * z))
}

// Of returns the power that a number of rows has; the field Power is not used.
func (p MeanPower) Of(rows int) float64 {
	return distuv.UnitNormal.CDF(p.Margin*math.Sqrt(float64(rows))/p.SD - distuv.UnitNormal.Quantile(1-p.Alpha))
}

// deviation is √n times the standard error of the mean over n rows that come in groups: the linearised estimate of a ratio.
func deviation(groups []Group) float64 {
	var all Group
	for _, g := range groups {
		all.Sum += g.Sum
		all.Rows += g.Rows
	}
	mean, squares := all.Sum/all.Rows, 0.0
	for _, g := range groups {
		d := g.Sum - mean*g.Rows
		squares += d * d
	}
	return math.Sqrt(squares / all.Rows)
}
