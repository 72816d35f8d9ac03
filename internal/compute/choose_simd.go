//go:build goexperiment.simd && amd64

package compute

import "simd/archsimd"

func choose() *kernels {
	if archsimd.X86.AVX2() && archsimd.X86.FMA() {
		return avx2()
	}
	return portable()
}
