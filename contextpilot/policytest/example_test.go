package policytest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/policytest"
)

// backwards sends the retriever's last block first.
type backwards struct{}

func (backwards) Name() string { return "backwards" }

func (backwards) Order(dst []int, q contextpilot.Query) []int {
	for i := range q.Blocks {
		dst = append(dst, len(q.Blocks)-1-i)
	}
	return dst
}

func Example() {
	// In a file of tests: func TestBackwards(t *testing.T) { policytest.Run(t, newBackwards) }
	newBackwards := func() contextpilot.Policy { return backwards{} }
	_ = func(t *testing.T) { policytest.Run(t, newBackwards) }

	order := newBackwards().Order(nil, contextpilot.Query{Blocks: make([]contextpilot.Candidate, 3)})
	fmt.Println(order, slices.IsSorted(order))
	// Output: [2 1 0] false
}

func TestBackwards(t *testing.T) {
	policytest.Run(t, func() contextpilot.Policy { return backwards{} })
}
