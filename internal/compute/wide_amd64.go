//go:build goexperiment.simd

package compute

import "simd/archsimd"

// avx512 is [avx2] with vectors of 16 lanes where they pay, each for the 8 lanes of two sums: the same bits.
func avx512() *kernels {
	k := avx2()
	k.gemv, k.wide = gemvWide, wideVectors
	return k
}

// sums512 computes the sums of wideRows rows of the input, of k columns each, a positive multiple of lanes, with the
// rows of wideGroups groups. The rows lie behind each other, and so do the groups. The processor must have AVX-512.
//
//go:noescape
func sums512(k int, input, groups *float32, sums *[wideRows][wideGroups * groupRows]vec)

// wideVectors adds in each lane the same products in the same order as [tileVectors]: two rows of weights share a vector of 16 lanes.
func wideVectors(k int, input, groups []float32, out *[wideRows][wideGroups * groupRows]float32) {
	_, _ = input[wideRows*k-1], groups[wideGroups*groupRows*k-1]
	var sums [wideRows][wideGroups * groupRows]vec
	sums512(k, &input[0], &groups[0], &sums)
	for i := range sums {
		s, o := &sums[i], &out[i]
		sum4(load(&s[0]), load(&s[1]), load(&s[2]), load(&s[3])).Store((*[groupRows]float32)(o[:groupRows]))
		sum4(load(&s[4]), load(&s[5]), load(&s[6]), load(&s[7])).Store((*[groupRows]float32)(o[groupRows:]))
	}
	archsimd.ClearAVXUpperBits()
}
