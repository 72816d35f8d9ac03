package compute

import "github.com/klauspost/cpuid/v2"

// available are the kernels that this processor, and its operating system, have, the fastest last.
func available() []*kernels {
	all := []*kernels{portable()}
	if has := cpuid.CPU.Supports; has(cpuid.AVX2, cpuid.FMA3, cpuid.F16C) {
		all = append(all, avx2())
		if has(cpuid.AVX512F, cpuid.AVX512CD, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL) {
			all = append(all, avx512())
		}
	}
	return all
}
