package eval

import (
	"fmt"
	"math"

	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/internal/lab/plot"
)

// Place is where an arm puts the block with the answer: at the At-th of Of places from the first to the last, both from 1.
type Place struct {
	At int `json:"at"`
	Of int `json:"of"`
}

// order is the retriever's order of n blocks with the one at a rank, from 1, at the place. Rank 0: there is none to move.
func (p Place) order(n, rank int) []int {
	order := make([]int, 0, n)
	to := (2*(p.At-1)*(n-1) + p.Of - 1) / (2 * (p.Of - 1)) // the nearest
	for i := range n {
		if i != rank-1 {
			order = append(order, i)
		}
	}
	if rank == 0 {
		return order
	}
	order = append(order, 0)
	copy(order[to+1:], order[to:])
	order[to] = rank - 1
	return order
}

// Positions are n arms, 2 at least, that put the block with the answer at one place each, with the others as retrieved.
func Positions(n int) []Arm {
	arms := make([]Arm, 0, n)
	for i := range n {
		p := fixed[Plain]
		p.Name = fmt.Sprintf("place-%d/%d", i+1, n)
		arms = append(arms, Arm{Name: p.Name, Profile: p, Place: &Place{i + 1, n}})
	}
	return arms
}

// Reading is how a model reads the places of a prompt.
type Reading struct {
	// Exact is the exact match with the block with the answer at each place.
	Exact []float64 `json:"exact"`
	// Last is the last place's exact match less the first's, row by row.
	Last Interval `json:"last_less_first"`
	rows int
}

// reading compares the arms of [Positions]; nil: there are none.
func (t *table) reading(arms []Arm, s Settings) *Reading {
	var at []int
	for i, a := range arms {
		if a.Place != nil {
			at = append(at, i)
		}
	}
	if at == nil {
		return nil
	}
	r := &Reading{rows: len(t.outcomes)}
	for _, i := range at {
		r.Exact = append(r.Exact, t.mean(func(o *Outcome) float64 { return one(o.Arms[i].Exact) }))
	}
	first, last := at[0], at[len(at)-1]
	boot := Bootstrap{s.Resamples, s.Seed, Confidence}
	r.Last, _ = boot.Mean(t.sums(func(o *Outcome) float64 { return one(o.Arms[last].Exact) - one(o.Arms[first].Exact) }))
	return r
}

// Profile is what suits the model: the default if it reads the last place better than the first; the best block kept first, where it
// reads that better; and the most reuse where neither is shown.
func (r *Reading) Profile() profile.Profile {
	switch {
	case r.Last.Low > 0:
		return profile.Profile{Name: "positions", Top: "near"}
	case r.Last.High < 0:
		return profile.Profile{Name: "positions", Top: "anywhere", Pin: 1}
	}
	return profile.Profile{Name: "positions", Top: "anywhere"}
}

// Plot draws the exact match over the places as SVG.
func (r *Reading) Plot(scorer string) []byte {
	c := plot.Chart{
		Title: "How the model reads each place", X: "place of the block with the answer, % of the way from the first to the last",
		Y: "exact match, %", Top: 100,
		Note: fmt.Sprintf("%s; %d rows, the other blocks as retrieved, %.0f %% intervals", scorer, r.rows, 100*Confidence),
	}
	for i, exact := range r.Exact {
		half := 1.96 * math.Sqrt(exact*(1-exact)/float64(r.rows))
		c.Add("exact match", plot.Mark{X: 100 * float64(i) / float64(len(r.Exact)-1), Y: 100 * exact, Half: 100 * half})
	}
	return c.SVG()
}
