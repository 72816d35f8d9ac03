//go:build !race

package replay_test

import "testing"

// notUnderRace skips what measures reuse and has one goroutine: the race detector learns nothing from it and takes ten
// times as long. .ci/run runs it without.
func notUnderRace(*testing.T) {}
