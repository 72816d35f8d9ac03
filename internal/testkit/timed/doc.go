// Package timed is for benchmarks that state medians: on a machine that others use, the mean of a call of some
// microseconds is mostly what the others did.
//
//	b.Run("search", func(b *testing.B) { timed.Median(b, search) })
//	b.Run("added", func(b *testing.B) { timed.Added(b, bare, search) })
package timed
