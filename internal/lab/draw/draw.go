// Package draw draws random integers that are the same on every machine: only the 64 bits of [rand.PCG], whose sequence is fixed, and
// integer arithmetic are used. Nothing depends on the size of an int, on how a processor rounds, or on the methods of [rand.Rand].
// Generated rows and traces rest on it.
package draw

import (
	"math/bits"
	"math/rand/v2"
)

// Random is a stream of random numbers. Not safe for concurrent use.
type Random struct{ pcg rand.PCG }

// New returns one of the streams of a seed.
func New(seed, stream uint64) *Random {
	r := &Random{}
	r.pcg.Seed(seed, stream)
	return r
}

// Bits returns 64 random bits.
func (r *Random) Bits() uint64 { return r.pcg.Uint64() }

// Below returns an integer in [0, n), all equally likely (Lemire 2019). n must be at least 1.
func (r *Random) Below(n int) int { return int(r.Below64(uint64(n))) }

// Below64 is [Random.Below] for 64 bits.
func (r *Random) Below64(n uint64) uint64 {
	hi, lo := bits.Mul64(r.pcg.Uint64(), n)
	if lo < n {
		for reject := -n % n; lo < reject; {
			hi, lo = bits.Mul64(r.pcg.Uint64(), n)
		}
	}
	return hi
}

// Permutation returns 0 to n−1 in random order.
func Permutation[T int | int32](r *Random, n int) []T {
	p := make([]T, n)
	for i := range p {
		j := r.Below(i + 1)
		p[i] = p[j]
		p[j] = T(i)
	}
	return p
}

// Pick returns one of the values, all equally likely.
func Pick[T any](r *Random, from []T) T { return from[r.Below(len(from))] }

// Shuffled returns the values in random order.
func Shuffled[T any](r *Random, all []T) []T {
	mixed := make([]T, len(all))
	for to, from := range Permutation[int](r, len(all)) {
		mixed[to] = all[from]
	}
	return mixed
}
