package eval

import (
	"math/bits"
	"math/rand/v2"
)

// random draws integers from [rand.PCG], whose sequence is fixed, with integer arithmetic only: the same seed gives the same
// rows on every machine.
type random struct{ pcg rand.PCG }

func newRandom(seed, stream uint64) *random {
	var r random
	r.pcg.Seed(seed, stream)
	return &r
}

// below returns an integer in [0, n), all equally likely (Lemire 2019). n must be at least 1.
func (r *random) below(n int) int {
	m := uint64(n)
	hi, lo := bits.Mul64(r.pcg.Uint64(), m)
	if lo < m {
		for reject := -m % m; lo < reject; {
			hi, lo = bits.Mul64(r.pcg.Uint64(), m)
		}
	}
	return int(hi)
}

// permutation returns 0 to n−1 in random order.
func (r *random) permutation(n int) []int {
	p := make([]int, n)
	for i := range p {
		j := r.below(i + 1)
		p[i] = p[j]
		p[j] = i
	}
	return p
}

func pick[T any](r *random, from []T) T { return from[r.below(len(from))] }

// harmonic draws 0 to n−1 with weights 1, 1/2, 1/3, …: a Zipf law with exponent 1.
type harmonic []int // sums of the weights so far

func newHarmonic(n int) harmonic {
	const unit = 1 << 24
	sums := make(harmonic, n)
	sum := 0
	for i := range sums {
		sum += unit / (i + 1)
		sums[i] = sum
	}
	return sums
}

func (h harmonic) draw(r *random) int {
	x := r.below(h[len(h)-1])
	low, high := 0, len(h)-1
	for low < high {
		if mid := (low + high) / 2; x < h[mid] {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}
