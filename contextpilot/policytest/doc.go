// Package policytest holds the suite that every contextpilot.Policy must pass: [Run], to be called from a policy's
// test with a function that makes a fresh one.
//
//	func TestMyPolicy(t *testing.T) {
//		policytest.Run(t, func() contextpilot.Policy { return &myPolicy{} })
//	}
package policytest
