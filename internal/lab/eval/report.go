package eval

import (
	"errors"
	"fmt"
	"math"

	"github.com/ragpilot/ragpilot/contextpilot/profile"
)

// Settings say how outcomes are judged.
type Settings struct {
	// Margin is the loss of exact match that is still acceptable, as a share: 0.02 are 2 points.
	Margin float64 `json:"margin"`
	// NLLMargin is the acceptable rise of the mean negative log likelihood, in nats per token.
	NLLMargin float64 `json:"nll_margin"`
	// Resamples and Seed are those of the [Bootstrap].
	Resamples int    `json:"resamples"`
	Seed      uint64 `json:"seed"`
}

// DefaultSettings are a margin of 2 points, 0.02 nats, and 10,000 resamples.
func DefaultSettings() Settings { return Settings{Margin: 0.02, NLLMargin: 0.02, Resamples: 10_000} }

// Confidence is that of all intervals, two-sided.
const Confidence = 0.95

// Report is what a run found.
type Report struct {
	Header        Header      `json:"run"`
	Settings      Settings    `json:"settings"`
	Confidence    float64     `json:"confidence"`
	Rows          int         `json:"rows"`          // judged
	Conversations int         `json:"conversations"` // that the rows belong to, and that are drawn as one in resamples
	LaterTurns    int         `json:"later_turns"`   // rows that are not the first of their conversation
	Arms          []ArmReport `json:"arms"`
	// Orders is nil without random orders.
	Orders *Orders `json:"orders,omitempty"`
	// Reading is nil without the arms of Positions.
	Reading *Reading `json:"reading,omitempty"`
	// Table is nil unless the rows are those of a table.
	Table *Table `json:"table,omitempty"`
	// Needed is what the number of rows rests on.
	Needed []Needed `json:"needed"`
}

// ArmReport is one arm, and its difference to plain, row by row: the arm's less plain's.
type ArmReport struct {
	Arm
	Exact    float64  `json:"exact"`
	Contains float64  `json:"contains"`
	F1       float64  `json:"f1"`
	NLL      *float64 `json:"nll,omitempty"`
	KL       *float64 `json:"kl,omitempty"`

	Layouts Layouts `json:"layouts"`
	Turns   []Part  `json:"turns"` // first, later
	Ranks   []Part  `json:"ranks"` // by the gold block's rank, from 1; Ranks[0] is that of rows without

	// The differences are nil for the plain arm.
	ExactDiff    *Difference `json:"exact_diff,omitempty"`
	ContainsDiff *Interval   `json:"contains_diff,omitempty"`
	F1Diff       *Interval   `json:"f1_diff,omitempty"`
	NLLDiff      *Difference `json:"nll_diff,omitempty"`
	// Verdict is that of exact match and, where it is known, likelihood together: not inferior in both, or inferior in one.
	Verdict Verdict `json:"verdict,omitempty"`
}

// Layouts is what an arm did to prompts.
type Layouts struct {
	Same      float64 `json:"same"`      // share of rows whose messages are plain's
	Reordered float64 `json:"reordered"` // share of rows whose blocks are not in the order retrieved
	Moved     float64 `json:"moved"`     // mean places that a block of these rows stands from its rank
	Hints     float64 `json:"hints"`     // share of rows with an order note
	Refs      float64 `json:"refs"`      // share of rows with a reference
	Echoes    float64 `json:"echoes"`    // share of rows with an echo
	Tokens    int     `json:"tokens"`    // estimated length of all prompts
	Computed  int     `json:"computed"`  // part of it that the pilot does not expect in a cache without limit
	// Reported is the length of all prompts as the engine reports it, of arms about cells only, and Cached the part that it found in its
	// cache; nil: it does not report that.
	Reported int  `json:"reported,omitempty"`
	Cached   *int `json:"cached,omitempty"`
}

// Part is the exact match of some of the rows.
type Part struct {
	Rows  int     `json:"rows"`
	Exact float64 `json:"exact"`
	// ExactDiff and NLLDiff are the part's own differences to plain, of [ArmReport.Turns] only; nil: not known.
	ExactDiff *Interval `json:"exact_diff,omitempty"`
	NLLDiff   *Interval `json:"nll_diff,omitempty"`
}

// Difference is a paired difference with a verdict.
type Difference struct {
	Interval
	BCa Interval `json:"bca"`
	// Score is Tango's interval, of exact match only; the verdict wants it and the bootstrap's percentiles to agree.
	Score *Interval `json:"score,omitempty"`
	// Gains and Losses are the rows in which the arm is right and plain is not, and the other way round.
	Gains   int     `json:"gains,omitempty"`
	Losses  int     `json:"losses,omitempty"`
	Verdict Verdict `json:"verdict"`
}

// Bounds is the interval that the verdict rests on: it holds the bootstrap's and, where there is one, Tango's.
func (d *Difference) Bounds() Interval {
	i := d.Interval
	if d.Score != nil {
		i.Low, i.High = min(i.Low, d.Score.Low), max(i.High, d.Score.High)
	}
	return i
}

// Orders is what random orders do to the model.
type Orders struct {
	N    int      `json:"n"`
	Min  float64  `json:"min_exact"` // of the N orders
	Max  float64  `json:"max_exact"`
	Diff Interval `json:"diff"` // their mean exact match less plain's
	// Unstable is the share of rows that are right in some of the orders, plain's included, and wrong in others.
	Unstable float64 `json:"unstable"`
}

// Needed is the number of rows that are needed to exclude a loss of the margin if there is no difference.
type Needed struct {
	Discordance float64 `json:"discordance,omitempty"` // share of rows that are right in one arm only; 0: this is about NLL
	NLL         float64 `json:"nll_sd,omitempty"`      // standard deviation of a row's difference of NLL, in nats per token
	Observed    string  `json:"observed,omitempty"`    // the arm in which it was; empty: an assumption
	Rows        int     `json:"rows_for_80_percent"`
	Power       float64 `json:"power_of_this_run"`
}

// Judge makes the report of a run's outcomes.
func Judge(h Header, outcomes []Outcome, s Settings) (*Report, error) {
	return judgeRows(h, outcomes, s, nil)
}

// judgeRows judges rows of a table, if that is not nil.
func judgeRows(h Header, outcomes []Outcome, s Settings, of *Table) (*Report, error) {
	if len(outcomes) == 0 {
		return nil, errors.New("no outcomes")
	}
	switch {
	case !(s.Margin > 0 && s.Margin < 1):
		return nil, fmt.Errorf("margin %v: want more than 0 and less than 1", s.Margin)
	case !(s.NLLMargin > 0):
		return nil, fmt.Errorf("nll margin %v: want more than 0", s.NLLMargin)
	case s.Resamples < 1:
		return nil, fmt.Errorf("resamples %d: want at least 1", s.Resamples)
	}
	t := tabulate(outcomes)
	r := &Report{Header: h, Settings: s, Confidence: Confidence, Rows: len(outcomes), Conversations: t.groups, Table: of}
	if of != nil {
		of.Above = t.above(of.Frequent, s)
		t.weak = !(of.Above.Low > 0)
	}
	for i := range outcomes {
		if outcomes[i].Turn > 1 {
			r.LaterTurns++
		}
	}
	for i, a := range h.Arms {
		r.Arms = append(r.Arms, t.arm(i, a, s))
	}
	r.Orders, r.Reading = t.orders(h.Arms, s), t.reading(h.Arms, s)
	var err error
	r.Needed, err = t.needed(r)
	return r, err
}

// needed is the power calculation: for assumed shares of discordant rows, for those of the arms, and for the arms' likelihoods.
func (t *table) needed(r *Report) ([]Needed, error) {
	all := []Needed{{Discordance: 0.05}, {Discordance: 0.1}, {Discordance: 0.2}}
	for _, a := range r.Arms {
		if a.ExactDiff != nil && !a.probes() && a.ExactDiff.Gains+a.ExactDiff.Losses > 0 {
			all = append(all, Needed{Discordance: float64(a.ExactDiff.Gains+a.ExactDiff.Losses) / float64(r.Rows), Observed: a.Name})
		}
	}
	for i := range all {
		p := Power{Discordance: all[i].Discordance, Margin: r.Settings.Margin, Alpha: (1 - Confidence) / 2, Power: 0.8}
		var err error
		if all[i].Rows, err = p.Rows(); err != nil {
			return nil, err
		}
		if all[i].Power, err = p.Of(r.Rows); err != nil {
			return nil, err
		}
	}
	for i, a := range r.Arms {
		if a.NLLDiff == nil || a.probes() {
			continue
		}
		sd := deviation(t.sums(nllRise(i)))
		p := MeanPower{SD: sd, Margin: r.Settings.NLLMargin, Alpha: (1 - Confidence) / 2, Power: 0.8}
		if sd > 0 {
			all = append(all, Needed{NLL: sd, Observed: a.Name, Rows: p.Rows(), Power: p.Of(r.Rows)})
		}
	}
	return all, nil
}

// Choice is the profile that a report speaks for: the default, if its arm is not inferior; otherwise, named "safe", that of
// the arm that is not inferior and computes fewest tokens. Random orders and places of a block are no choice. False: there is none.
func (r *Report) Choice() (profile.Profile, bool) {
	var best *ArmReport
	for i := range r.Arms {
		a := &r.Arms[i]
		if a.Verdict != NotInferior || a.probes() || a.Name == Plain || a.Cells != "" {
			continue
		}
		if a.Name == Default {
			p := a.Profile
			p.Name = "default"
			return p, true
		}
		if best == nil || a.Layouts.Computed < best.Layouts.Computed {
			best = a
		}
	}
	if best == nil {
		return profile.Profile{}, false
	}
	p := best.Profile
	p.Name = "safe"
	return p, true
}

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
