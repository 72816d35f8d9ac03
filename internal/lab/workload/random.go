package workload

import (
	"math/bits"
	"math/rand/v2"
)

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

// random draws integers. Only the generator's 64 bits and integer arithmetic are used: nothing depends on the size
// of an int, on how a processor rounds, or on the methods of [rand.Rand].
type random struct{ pcg rand.PCG }

// newRandom returns the stream of one thing: what it is for, and which of them.
func newRandom(seed uint64, purpose, index int) *random {
	var r random
	r.pcg.Seed(seed, mix(uint64(purpose)<<56^uint64(index)))
	return &r
}

// mix spreads the bits of x (the finaliser of SplitMix64), so that neighbouring streams have nothing in common.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below returns an integer in [0, n), all equally likely (Lemire 2019); n must not be 0.
func (r *random) below(n uint64) uint64 {
	hi, lo := bits.Mul64(r.pcg.Uint64(), n)
	if lo < n {
		for reject := -n % n; lo < reject; {
			hi, lo = bits.Mul64(r.pcg.Uint64(), n)
		}
	}
	return hi
}

func (r *random) intn(n int) int { return int(r.below(uint64(n))) }

// exponential returns -log2 of a number uniform in (0, 1], in units of 2^-32: exponentially distributed, of mean
// 1/ln 2 = 1.4427.
func (r *random) exponential() uint64 { return 64<<32 - log2(r.pcg.Uint64()|1) }

// permutation returns 0 to n-1 in random order.
func (r *random) permutation(n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		j := r.intn(i + 1)
		p[i] = p[j]
		p[j] = int32(i)
	}
	return p
}

// round returns x/2^32, rounded up or down at random so that the mean is exact.
func (r *random) round(x uint64) int { return int((x + r.pcg.Uint64()>>32) >> 32) }
