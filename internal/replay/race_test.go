//go:build race

package replay_test

// raceDetector: measurements of reuse learn nothing from it and take ten times as long.
const raceDetector = true
