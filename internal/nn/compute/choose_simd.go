//go:build goexperiment.simd && amd64

package compute

import "simd/archsimd"

// available are the kernels that this processor has, the fastest last.
func available() []*kernels {
	all := []*kernels{portable()}
	if archsimd.X86.AVX2() && archsimd.X86.FMA() {
		all = append(all, avx2())
		if archsimd.X86.AVX512() {
			all = append(all, avx512())
		}
	}
	return all
}
