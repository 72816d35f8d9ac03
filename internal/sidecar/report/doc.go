// Package report turns the proxy's reports into metrics and into the figures that people ask for: how much of the
// prompts the engine had cached, how long answers took to begin, what a cloud provider's cache has cost and saved, and
// what planning saves, measured against sessions that are held out (package gain).
//
//	f, err := report.New(report.Options{Registry: registry})
//	proxy.New(proxy.Options{Recorder: f, …})
//	admin.Handle("GET /figures", f)
//
// # Caveats
//
//   - Planned requests, those held out, those of shadow mode and those that were not to be touched are counted apart:
//     a ratio over all of them would mean nothing.
//   - What shadow mode would have done stands under would_have and nowhere else. Nothing is saved in it, and its requests
//     are no samples of what planning saves.
//   - Samples are those of the present hold-out share. When it changes they begin anew: groups of different times do not
//     compare.
package report
