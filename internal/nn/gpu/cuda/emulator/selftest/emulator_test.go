//go:build cuda

package selftest

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/ragpilot/ragpilot/internal/nn/gpu/cuda/emulator"
)

// image is as much of a module's text as the emulator looks at.
const image = `.version 8.1
.target sm_80
.entry sample_sum( .entry sample_add( .entry sample_write( .entry sample_stale( .entry sample_lanes( .entry sample_leave(
.entry sample_stuck( .entry sample_dynamic( .entry sample_vector( .entry sample_absent(
`

const block = 256

// device is a context on a device, with a module of the sample kernels.
type device struct {
	t      *testing.T
	ctx    cu.CUContext
	module cu.Module
}

func open(t *testing.T, number int) *device {
	t.Helper()
	if !emulator.Present() {
		t.Skip("not run: tests of the emulated driver (this program runs with another driver; see .ci/gpu.sh)")
	}
	runtime.LockOSThread()
	d, err := cu.GetDevice(number)
	check(t, err)
	ctx, err := d.MakeContext(cu.SchedAuto)
	check(t, err)
	m, err := cu.LoadDataEx(image)
	check(t, err)
	dev := &device{t, ctx, m}
	t.Cleanup(func() { _ = dev.ctx.Destroy() })
	return dev
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *device) alloc(floats int) cu.DevicePtr {
	d.t.Helper()
	p, err := cu.MemAlloc(int64(4 * floats))
	check(d.t, err)
	return p
}

func (d *device) upload(values []float32) cu.DevicePtr {
	d.t.Helper()
	p := d.alloc(len(values))
	check(d.t, cu.MemcpyHtoD(p, unsafe.Pointer(&values[0]), int64(4*len(values))))
	return p
}

func (d *device) download(p cu.DevicePtr, n int) []float32 {
	d.t.Helper()
	check(d.t, cu.Synchronize())
	out := make([]float32, n)
	check(d.t, cu.MemcpyDtoH(unsafe.Pointer(&out[0]), p, int64(4*n)))
	return out
}

func (d *device) stream() cu.Stream {
	d.t.Helper()
	s, err := cu.MakeStream(cu.NonBlocking)
	check(d.t, err)
	return s
}

func launch(d *device, kernel string, grid, threads int, s cu.Stream, arguments ...uint64) error {
	d.t.Helper()
	f, err := d.module.Function(kernel)
	check(d.t, err)
	p := make([]unsafe.Pointer, len(arguments))
	for i := range arguments {
		p[i] = unsafe.Pointer(&arguments[i])
	}
	return f.Launch(grid, 1, 1, threads, 1, 1, 0, s, p)
}

func (d *device) launch(kernel string, grid, threads int, s cu.Stream, arguments ...uint64) {
	d.t.Helper()
	check(d.t, launch(d, kernel, grid, threads, s, arguments...))
}

func bitsOf(f float32) uint64 { return uint64(math.Float32bits(f)) }

func TestSum(t *testing.T) {
	d := open(t, 0)
	x := make([]float32, 1111)
	want := make([]float32, 5)
	for i := range x {
		x[i] = float32(i%7) - 2
		want[i/block] += x[i]
	}
	sums := d.alloc(5)
	d.launch("sample_sum", 5, block, cu.NoStream, uint64(d.upload(x)), uint64(sums), uint64(len(x)))
	if got := d.download(sums, 5); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
