//go:build cuda

// Package selftest tests the emulated driver with kernels of its own, sample.cu.
package selftest

/*
#cgo LDFLAGS: -lcuda
#include <cuda.h>
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// pinned returns n floats that a device can read and write.
func pinned(n int) ([]float32, func()) {
	var p unsafe.Pointer
	if code := C.cuMemHostAlloc(&p, C.size_t(4*n), 3); code != 0 {
		panic(fmt.Sprintf("cuMemHostAlloc: %d", code))
	}
	return unsafe.Slice((*float32)(p), n), func() { C.cuMemFreeHost(p) }
}
