package workload

import (
	"math/big"
	"math/bits"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/internal/lab/draw"
)

// one is 1 in the fixed-point numbers of this package, which have 32 bits behind the point.
const one = 1 << 32

// fixed returns a float as the nearest fixed-point number. Multiplying by a power of two is exact: a processor that
// fuses it with the addition gives the same.
func fixed(f float64) uint64 { return uint64(float64(f*one) + 0.5) }

// log2 returns the binary logarithm of x > 0 in fixed point, by repeated squaring.
func log2(x uint64) uint64 {
	shift := bits.LeadingZeros64(x)
	out := uint64(63-shift) << 32
	y := x << shift // in [1, 2) with 63 bits behind the point
	for bit := uint64(one >> 1); bit > 0; bit >>= 1 {
		y, _ = bits.Mul64(y, y) // now 62 bits behind the point
		if y>>63 != 0 {
			out |= bit
		} else {
			y <<= 1
		}
	}
	return out
}

// roots returns 2^-(2^-i) for i = 1 to 32 with 62 bits behind the point.
var roots = sync.OnceValue(func() (c [32]uint64) {
	x := big.NewInt(1 << 61)
	for i := range c {
		x.Sqrt(x.Lsh(x, 62))
		c[i] = x.Uint64()
	}
	return c
})

// powerBits is the number of bits behind the point of a result of inversePower. maxCount such numbers can be added up.
const powerBits = 36

// inversePower returns x^-s with powerBits bits behind the point, but at least the smallest positive number. s is in
// fixed point, x > 0.
func inversePower(x, s uint64) uint64 {
	hi, lo := bits.Mul64(log2(x), s)
	e := hi<<32 | lo>>32 // x^-s = 2^-e
	p := uint64(1) << 62
	c := roots()
	for i, bit := 0, uint64(one>>1); bit > 0; i, bit = i+1, bit>>1 {
		if e&bit != 0 {
			hi, lo := bits.Mul64(p, c[i])
			p = hi<<2 | lo>>62
		}
	}
	return max(1, p>>(62-powerBits)>>(e>>32))
}

// zipf draws ranks from 0 on, rank r with a weight of (r+1)^-s.
type zipf struct {
	weight []uint64
	below  []uint64 // sum of the weights of the ranks before; one longer than weight
}

func newZipf(ranks int, s float64) zipf {
	z := zipf{weight: make([]uint64, ranks), below: make([]uint64, ranks+1)}
	for r := range z.weight {
		z.weight[r] = inversePower(uint64(r)+1, fixed(s))
		z.below[r+1] = z.below[r] + z.weight[r]
	}
	return z
}

// draw returns one of the first n ranks.
func (z zipf) draw(r random, n int) int {
	rank, _ := slices.BinarySearch(z.below[1:n+1], r.Below64(z.below[n])+1)
	return rank
}

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
