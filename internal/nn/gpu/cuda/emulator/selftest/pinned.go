//go:build cuda

// Package selftest tests the emulated driver with kernels of its own, sample.cu.
package selftest

/*
#cgo LDFLAGS: -lcuda
#include <cuda.h>
#include <stdint.h>

static int launch_packed(CUfunction f, void *arguments, size_t size) {
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
	return cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, NULL, NULL, extra);
}

static int get_function(CUfunction *f, uintptr_t module, const char *name) {
	return cuModuleGetFunction(f, (CUmodule)module, name);
}
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

// registered makes floats of the program's memory pinned, and returns what a device calls them.
func registered(x []float32) (device uint64, release func() int) {
	var p C.CUdeviceptr
	if code := C.cuMemHostRegister(unsafe.Pointer(&x[0]), C.size_t(4*len(x)), 3); code != 0 {
		panic(fmt.Sprintf("cuMemHostRegister: %d", code))
	}
	if code := C.cuMemHostGetDevicePointer(&p, unsafe.Pointer(&x[0]), 0); code != 0 {
		panic(fmt.Sprintf("cuMemHostGetDevicePointer: %d", code))
	}
	return uint64(p), func() int { return int(C.cuMemHostUnregister(unsafe.Pointer(&x[0]))) }
}

// addPacked launches sample_add for four numbers, with its arguments one after the other as a kernel has them.
func addPacked(module uintptr, x uint64, by float32) int {
	var f C.CUfunction
	name := C.CString("sample_add")
	if code := C.get_function(&f, C.uintptr_t(module), name); code != 0 {
		return int(code)
	}
	arguments := struct {
		x  uint64
		by float32
		n  uint32
	}{x, by, 4}
	return int(C.launch_packed(f, unsafe.Pointer(&arguments), C.size_t(unsafe.Sizeof(arguments))))
}
