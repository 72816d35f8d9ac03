//go:build !amd64

package compute

// available are the kernels that this build has.
func available() []*kernels { return []*kernels{portable()} }
