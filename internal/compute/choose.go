//go:build !(goexperiment.simd && amd64)

package compute

func choose() *kernels { return portable() }
