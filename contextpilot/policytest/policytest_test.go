package policytest_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/policytest"
)

func TestBuiltIn(t *testing.T) {
	for _, name := range contextpilot.PolicyNames() {
		t.Run(name, func(t *testing.T) {
			policytest.Run(t, func() contextpilot.Policy {
				p, err := contextpilot.NewPolicy(name)
				if err != nil {
					t.Fatal(err)
				}
				return p
			})
		})
	}
}
