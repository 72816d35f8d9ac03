//go:build race

package testkit

import "testing"

// NotUnderRace skips what only measures, or what has hardly more than one goroutine at work: the race detector learns nothing from it,
// and takes ten times as long.
func NotUnderRace(t testing.TB) {
	t.Helper()
	t.Skip("needs a run without the race detector: .ci/run makes one")
}
