//go:build cuda

package cuda

/*
#cgo CFLAGS: -I/usr/local/cuda/include -I/opt/cuda/include
#cgo LDFLAGS: -L/usr/local/cuda/lib64/stubs -L/opt/cuda/lib64/stubs -lcuda -ldl
#include <cuda.h>
#include <stdlib.h>

int ragpilot_init_result(void);

// These run on whatever thread: they have the context only while they last.
static CUresult wait_stream(void* context, void* stream) {
	CUresult r = cuCtxSetCurrent(context);
	if (r == CUDA_SUCCESS) r = cuStreamSynchronize(stream);
	cuCtxSetCurrent(NULL);
	return r;
}
static CUresult wait_event(void* context, void* event) {
	CUresult r = cuCtxSetCurrent(context);
	if (r == CUDA_SUCCESS) r = cuEventSynchronize(event);
	cuCtxSetCurrent(NULL);
	return r;
}

// The memory can be used by all contexts and has an address on the card.
static CUresult host_alloc(size_t n, void** p, unsigned long long* address) {
	CUdeviceptr d = 0;
	CUresult r = cuMemHostAlloc(p, n, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
	if (r != CUDA_SUCCESS) return r;
	r = cuMemHostGetDevicePointer(&d, *p, 0);
	if (r != CUDA_SUCCESS) cuMemFreeHost(*p);
	*address = d;
	return r;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// What gorgonia.org/cu has not: pinned memory, and waiting on another thread than the context's.

// pinned is memory of the program's that the card can read and write.
type pinned struct {
	bytes   []byte
	address uint64 // on the card
}

// newPinned must be called by the device's goroutine.
func newPinned(n int) (*pinned, error) {
	var p unsafe.Pointer
	var address C.ulonglong
	if err := result(C.host_alloc(C.size_t(n), &p, &address)); err != nil {
		return nil, err
	}
	return &pinned{bytes: unsafe.Slice((*byte)(p), n), address: uint64(address)}, nil
}

// free must be called by the device's goroutine.
func (p *pinned) free() error {
	return result(C.cuMemFreeHost(unsafe.Pointer(unsafe.SliceData(p.bytes))))
}

// at is a place in p.
func (p *pinned) at(offset int) unsafe.Pointer { return unsafe.Pointer(&p.bytes[offset]) }

// handle is the pointer that a type of gorgonia.org/cu consists of.
func handle[T cu.CUContext | cu.Stream | cu.Event](x T) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&x))
}

func waitStream(c cu.CUContext, s cu.Stream) error {
	return result(C.wait_stream(handle(c), handle(s)))
}

func waitEvent(c cu.CUContext, e cu.Event) error { return result(C.wait_event(handle(c), handle(e))) }

// started is nil if the driver has found cards.
func started() error { return result(C.CUresult(C.ragpilot_init_result())) }

// code makes a number an error of gorgonia.org/cu, whose type has no name there.
func code[T ~int](_ T, n int) T { return T(n) }

func result(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return code(cu.Success, int(r))
}

// number is that of an error of the driver's; -1: it is another.
func number(err error) int {
	if c := cu.Success; errors.As(err, &c) {
		return int(c)
	}
	return -1
}

// stub is what libraries say that only have the names of the driver's functions.
const stub = 34

// lost reports whether nothing works any more after an error of that number.
func lost(number int) bool {
	switch number {
	case 4, 201, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 806, 810, 999:
		return true
	}
	return false
}

// reason wraps an error of the driver's in the one of package gpu for its kind.
func reason(err error) error {
	n := number(err)
	text := fmt.Sprintf("CUDA error %d (%v)", n, err)
	if n == stub {
		text = fmt.Sprintf("CUDA error %d (libcuda.so.1 is not a driver's)", n)
	}
	switch {
	case n < 0:
		return err
	case n == 2:
		return fmt.Errorf("%w: %s", gpu.ErrMemory, text)
	case lost(n):
		return fmt.Errorf("%w: %s", gpu.ErrLost, text)
	case n == stub || n == 46 || n == 100 || n == 101:
		return fmt.Errorf("%w: %s", gpu.ErrNoDevice, text)
	}
	return errors.New(text)
}
