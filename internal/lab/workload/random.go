package workload

import "github.com/ragpilot/ragpilot/internal/lab/draw"

// Streams of random numbers. Each thing that is drawn has a stream of its own, so that, for example, a longer trace
// does not change the blocks' texts.
const (
	forIDs = iota + 1
	forPopularity
	forTopic
	forBirth
	forRequests
	forQueries
	forVocabulary
	forTopicWords
	forText
	forMap
)

// random is a stream with the distributions of this package, in fixed point.
type random struct{ *draw.Random }

// newRandom returns the stream of one thing: what it is for, and which of them.
func newRandom(seed uint64, purpose, index int) random {
	return random{draw.New(seed, mix(uint64(purpose)<<56^uint64(index)))}
}

// mix spreads the bits of x (the finaliser of SplitMix64), so that neighbouring streams have nothing in common.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// exponential returns -log2 of a number uniform in (0, 1], in units of 2^-32: exponentially distributed, of mean
// 1/ln 2 = 1.4427.
func (r random) exponential() uint64 { return 64<<32 - log2(r.Bits()|1) }

// permutation returns 0 to n-1 in random order.
func (r random) permutation(n int) []int32 { return draw.Permutation[int32](r.Random, n) }

// round returns x/2^32, rounded up or down at random so that the mean is exact.
func (r random) round(x uint64) int { return int((x + r.Bits()>>32) >> 32) }
