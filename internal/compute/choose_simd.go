//go:build goexperiment.simd && amd64

package compute

import "simd/archsimd"

func choose() *kernels {
	if !archsimd.X86.AVX2() || !archsimd.X86.FMA() {
		return portable()
	}
	k := avx2()
	if archsimd.X86.AVX512() {
		k.wide = wideVectors
	}
	return k
}
