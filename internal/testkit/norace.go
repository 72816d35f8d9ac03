//go:build !race

package testkit

import "testing"

// NotUnderRace skips what only measures, with one goroutine: the race detector learns nothing from it and takes ten
// times as long.
func NotUnderRace(testing.TB) {}
