package compute

import (
	"cmp"
	"slices"
)

// Probe collects how much rows attend to the first tokens of their sequence: for each head of keys and values the sum over rows, and over
// the queries that share the head, of attention weights. Results are the same bits on any number of threads. A probe is for one call of
// [Crew.Attend] at a time, and adds up over calls.
type Probe struct {
	// Tokens is how many of the sequence's first tokens are looked at.
	Tokens int
	// Sums has Tokens numbers for each head of keys and values.
	Sums []float32
	// Rows says what each row counts.
	Rows RowWeight
	// Within normalises a row's weights over the first Tokens alone, not over all that the row sees.
	Within bool
	// Most takes the largest weight in place of the sum.
	Most bool
}

// RowWeight is what a row counts in a [Probe].
type RowWeight uint8

// Row weights.
const (
	Equal     RowWeight = iota
	Position            // the number of tokens that the row sees
	ValueNorm           // the Euclidean norm of the row's own values
)

// NewProbe returns a probe of the first tokens of a sequence.
func NewProbe(h Heads, tokens int) *Probe {
	return &Probe{Tokens: tokens, Sums: make([]float32, h.KV*tokens)}
}

// weight is what the row at a position counts.
func (p *Probe) weight(h Heads, t task, position int) float32 {
	switch p.Rows {
	case Position:
		return float32(position + 1)
	case ValueNorm:
		return float32(t.run.Pages[position/PageTokens].ValueNorm(h, t.head, position%PageTokens))
	}
	return 1
}

// Largest returns the places of the k largest values in ascending order. Of equal values the first are taken.
func Largest(values []float32, k int) []int {
	all := make([]int, len(values))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	all = all[:k]
	slices.Sort(all)
	return all
}

// row takes the exponentials of one query's products, whose sum is given.
func (p *Probe) row(seen, exponentials []float32, sum, weight float32) {
	seen = seen[:min(len(seen), len(exponentials))]
	exponentials = exponentials[:len(seen)]
	if p.Within {
		sum = 0
		for _, x := range exponentials {
			sum += x
		}
	}
	if sum == 0 {
		return // all that it sees is beyond the first tokens
	}
	factor := weight / sum
	if p.Most {
		for i, x := range exponentials {
			seen[i] = max(seen[i], x*factor)
		}
		return
	}
	for i, x := range exponentials {
		seen[i] += float32(x * factor)
	}
}

// add takes what one task has seen.
func (p *Probe) add(head int, seen []float32) {
	sums := p.Sums[head*p.Tokens:][:len(seen)]
	for i, x := range seen {
		if p.Most {
			sums[i] = max(sums[i], x)
		} else {
			sums[i] += x
		}
	}
}
