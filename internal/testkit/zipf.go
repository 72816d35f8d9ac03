package testkit

import "math/rand/v2"

// Zipf draws n sets of k elements by Zipf's law, the first elements most often. It draws the same for the same k.
func Zipf[T any](all []T, n, k int) [][]T {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, uint64(k))), 1.1, 10, uint64(len(all)-1))
	out := make([][]T, n)
	for i := range out {
		taken := map[uint64]bool{}
		for len(out[i]) < k {
			if d := zipf.Uint64(); !taken[d] {
				taken[d] = true
				out[i] = append(out[i], all[d])
			}
		}
	}
	return out
}
