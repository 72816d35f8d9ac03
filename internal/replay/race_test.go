//go:build race

package replay_test

import "testing"

func notUnderRace(t *testing.T) {
	t.Helper()
	t.Skip("needs a run without the race detector: .ci/run makes one")
}
