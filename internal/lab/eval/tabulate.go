package eval

import (
	"math"
	"slices"
)

// table is the outcomes with what belongs together.
type table struct {
	outcomes []Outcome
	group    []int // by outcome
	groups   int
	weak     bool // plain is not shown to be better than the same answer to all rows
}

func tabulate(outcomes []Outcome) *table {
	t := &table{outcomes: outcomes, group: make([]int, len(outcomes))}
	known := map[string]int{}
	for i := range outcomes {
		g, ok := known[outcomes[i].Session]
		if !ok {
			g = t.groups
			t.groups++
			if outcomes[i].Session != "" {
				known[outcomes[i].Session] = g
			}
		}
		t.group[i] = g
	}
	return t
}

// sums adds up a value of each outcome by group.
func (t *table) sums(value func(*Outcome) float64) []Group {
	groups := make([]Group, t.groups)
	for i := range t.outcomes {
		g := &groups[t.group[i]]
		g.Sum += value(&t.outcomes[i])
		g.Rows++
	}
	return groups
}

func (t *table) mean(value func(*Outcome) float64) float64 {
	sum := 0.0
	for i := range t.outcomes {
		sum += value(&t.outcomes[i])
	}
	return sum / float64(len(t.outcomes))
}

// known reports whether every outcome has a value.
func (t *table) known(value func(*Outcome) *float64) bool {
	return !slices.ContainsFunc(t.outcomes, func(o Outcome) bool { return value(&o) == nil })
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// arm reports arm i; the plain one is arm 0.
func (t *table) arm(i int, arm Arm, s Settings) ArmReport {
	r := ArmReport{Arm: arm, Layouts: t.layouts(i)}
	exact := func(o *Outcome) float64 { return one(o.Arms[i].Exact) }
	r.Exact = t.mean(exact)
	r.Contains = t.mean(func(o *Outcome) float64 { return one(o.Arms[i].Contains) })
	r.F1 = t.mean(func(o *Outcome) float64 { return o.Arms[i].F1 })
	if nll := func(o *Outcome) *float64 { return o.Arms[i].NLL }; t.known(nll) {
		r.NLL = new(t.mean(func(o *Outcome) float64 { return *nll(o) }))
	}
	if kl := func(o *Outcome) *float64 { return o.Arms[i].KL }; t.known(kl) {
		r.KL = new(t.mean(func(o *Outcome) float64 { return *kl(o) }))
	}
	r.Turns = t.parts(exact, turnPart)
	r.Ranks = t.parts(exact, func(o *Outcome) int { return o.GoldRank })
	if i == 0 {
		return r
	}
	boot := Bootstrap{s.Resamples, s.Seed, Confidence}
	r.ExactDiff = t.exactDiff(i, s, boot)
	contains, _ := boot.Mean(t.sums(func(o *Outcome) float64 { return one(o.Arms[i].Contains) - one(o.Arms[0].Contains) }))
	f1, _ := boot.Mean(t.sums(func(o *Outcome) float64 { return o.Arms[i].F1 - o.Arms[0].F1 }))
	r.ContainsDiff, r.F1Diff = &contains, &f1
	r.Verdict = r.ExactDiff.Verdict
	t.turnDiffs(i, r.Turns, boot)
	if t.comparable(i) {
		r.NLLDiff = t.nllDiff(i, s, boot)
		r.Verdict = both(r.Verdict, r.NLLDiff.Verdict)
	}
	return r
}

// comparable reports whether the likelihoods of arm i and of plain are known.
func (t *table) comparable(i int) bool {
	return t.known(func(o *Outcome) *float64 { return o.Arms[i].NLL }) && t.known(func(o *Outcome) *float64 { return o.Arms[0].NLL })
}

// exactGain is how much better arm i matches than plain.
func exactGain(i int) func(*Outcome) float64 {
	return func(o *Outcome) float64 { return one(o.Arms[i].Exact) - one(o.Arms[0].Exact) }
}

// nllRise is how much less likely the answer is in arm i than in plain.
func nllRise(i int) func(*Outcome) float64 {
	return func(o *Outcome) float64 { return *o.Arms[i].NLL - *o.Arms[0].NLL }
}

// turnPart is 0 for a first turn and 1 for a later one.
func turnPart(o *Outcome) int { return min(o.Turn, 2) - 1 }

// turnDiffs adds the differences of first and of later turns, which references and orders change in ways of their own.
func (t *table) turnDiffs(i int, turns []Part, boot Bootstrap) {
	for part := range turns {
		some := tabulate(slices.DeleteFunc(slices.Clone(t.outcomes), func(o Outcome) bool { return turnPart(&o) != part }))
		if len(some.outcomes) == 0 {
			continue
		}
		exact, _ := boot.Mean(some.sums(exactGain(i)))
		turns[part].ExactDiff = &exact
		if some.comparable(i) {
			nll, _ := boot.Mean(some.sums(nllRise(i)))
			turns[part].NLLDiff = &nll
		}
	}
}

func (t *table) exactDiff(i int, s Settings, boot Bootstrap) *Difference {
	d := &Difference{}
	d.Interval, d.BCa = boot.Mean(t.sums(exactGain(i)))
	for k := range t.outcomes {
		switch a, plain := t.outcomes[k].Arms[i].Exact, t.outcomes[k].Arms[0].Exact; {
		case a && !plain:
			d.Gains++
		case plain && !a:
			d.Losses++
		}
	}
	score := tango(d.Gains, d.Losses, len(t.outcomes), Confidence)
	d.Score = &score
	d.Verdict = Undecided
	if t.decides() {
		d.Verdict = judge(s.Margin, d.Interval, score)
	}
	return d
}

// decides reports whether the rows say anything about quality.
func (t *table) decides() bool {
	return !t.weak && t.groups >= MinGroups && t.mean(func(o *Outcome) float64 { return one(o.Arms[0].Exact) }) >= MinExact
}

func (t *table) nllDiff(i int, s Settings, boot Bootstrap) *Difference {
	d := &Difference{Verdict: Undecided}
	d.Interval, d.BCa = boot.Mean(t.sums(nllRise(i)))
	if t.decides() {
		d.Verdict = judge(s.NLLMargin, Interval{-d.Mean, -d.High, -d.Low}) // a rise is a loss
	}
	return d
}

// both takes two verdicts together.
func both(a, b Verdict) Verdict {
	switch {
	case a == Inferior || b == Inferior:
		return Inferior
	case a == NotInferior && b == NotInferior:
		return NotInferior
	}
	return Undecided
}

// parts splits the rows.
func (t *table) parts(value func(*Outcome) float64, part func(*Outcome) int) []Part {
	var parts []Part
	for i := range t.outcomes {
		at := part(&t.outcomes[i])
		for len(parts) <= at {
			parts = append(parts, Part{})
		}
		parts[at].Rows++
		parts[at].Exact += value(&t.outcomes[i])
	}
	for i := range parts {
		parts[i].Exact /= math.Max(1, float64(parts[i].Rows))
	}
	return parts
}

func (t *table) layouts(i int) Layouts {
	var l Layouts
	moved, cached, counted := 0.0, 0, 0
	for k := range t.outcomes {
		a, plain := &t.outcomes[k].Arms[i], &t.outcomes[k].Arms[0]
		l.Tokens += a.Tokens
		l.Computed += a.Tokens - a.Expected
		if l.Reported += a.PromptTokens; a.CachedTokens != nil {
			cached += *a.CachedTokens
			counted++
		}
		l.Same += one(a.Prompt == plain.Prompt)
		l.Hints += one(a.Hint)
		l.Refs += one(len(a.Refs) > 0)
		l.Echoes += one(a.Echo)
		if !slices.IsSorted(a.Sent) {
			l.Reordered++
			moved += a.Moved()
		}
	}
	if l.Reordered > 0 {
		l.Moved = moved / l.Reordered
	}
	if counted == len(t.outcomes) {
		l.Cached = &cached
	}
	n := float64(len(t.outcomes))
	l.Same, l.Hints, l.Refs, l.Echoes, l.Reordered = l.Same/n, l.Hints/n, l.Refs/n, l.Echoes/n, l.Reordered/n
	return l
}

// orders reports the arms in random order; nil: there are none.
func (t *table) orders(arms []Arm, s Settings) *Orders {
	var at []int
	for i, a := range arms {
		if a.Shuffle != 0 {
			at = append(at, i)
		}
	}
	if at == nil {
		return nil
	}
	r := &Orders{N: len(at), Min: math.Inf(1), Max: math.Inf(-1)}
	for _, i := range at {
		exact := t.mean(func(o *Outcome) float64 { return one(o.Arms[i].Exact) })
		r.Min, r.Max = math.Min(r.Min, exact), math.Max(r.Max, exact)
	}
	r.Unstable = t.mean(func(o *Outcome) float64 {
		return one(slices.ContainsFunc(at, func(i int) bool { return o.Arms[i].Exact != o.Arms[0].Exact }))
	})
	boot := Bootstrap{s.Resamples, s.Seed, Confidence}
	r.Diff, _ = boot.Mean(t.sums(func(o *Outcome) float64 {
		sum := 0.0
		for _, i := range at {
			sum += one(o.Arms[i].Exact)
		}
		return sum/float64(len(at)) - one(o.Arms[0].Exact)
	}))
	return r
}
