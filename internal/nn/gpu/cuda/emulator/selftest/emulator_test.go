//go:build cuda

package selftest

import (
	"errors"
	"fmt"
	"math"
	"os"
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
.entry sample_stuck( .entry sample_dynamic( .entry sample_vector( .entry sample_absent( .entry sample_race( .entry sample_number(
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

// tryLaunch passes each argument in 8 bytes.
func (d *device) tryLaunch(kernel string, grid, threads, shared int, s cu.Stream, arguments ...uint64) error {
	d.t.Helper()
	f, err := d.module.Function(kernel)
	check(d.t, err)
	p := make([]unsafe.Pointer, len(arguments))
	for i := range arguments {
		p[i] = unsafe.Pointer(&arguments[i])
	}
	return f.Launch(grid, 1, 1, threads, 1, 1, shared, s, p)
}

func (d *device) launch(kernel string, grid, threads int, s cu.Stream, arguments ...uint64) {
	d.t.Helper()
	check(d.t, d.tryLaunch(kernel, grid, threads, 0, s, arguments...))
}

// add adds by to each of four numbers.
func (d *device) add(s cu.Stream, x cu.DevicePtr, by float32) {
	d.t.Helper()
	d.launch("sample_add", 1, block, s, uint64(x), uint64(math.Float32bits(by)), 4)
}

func lazy() bool { return os.Getenv("RP_EMU_ORDER") != "eager" }

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

func TestLanes(t *testing.T) {
	d := open(t, 0)
	const n = 64
	out := d.alloc(8 * n)
	d.launch("sample_lanes", 1, n, cu.NoStream, uint64(out))
	for i, f := range d.download(out, 8*n) {
		thread, got := i/8, int(math.Float32bits(f))
		lane, warp := thread%32, thread/32
		var ballot uint32
		for l := range 32 {
			if (32*warp+l)%3 == 0 {
				ballot |= 1 << l
			}
		}
		bit := map[bool]int{true: 1}
		want := []int{
			thread - 3, thread + 3, 32*warp + 5, thread/8*8 + 5, int(ballot), thread ^ 1, bit[warp == 1], bit[warp == 0],
		}[i%8]
		switch {
		case i%8 == 0 && lane < 3, i%8 == 1 && lane >= 29:
			want = thread
		case i%8 == 5 && lane >= 16:
			want = 0
		}
		if got != want {
			t.Errorf("thread %d: number %d is %#x, want %#x", thread, i%8, got, want)
		}
	}
}

func TestThreadsThatEnd(t *testing.T) {
	d := open(t, 0)
	out := d.alloc(1)
	d.launch("sample_leave", 1, 128, cu.NoStream, uint64(out))
	if got := math.Float32bits(d.download(out, 1)[0]); got != 128 {
		t.Errorf("%d threads counted, want 128", got)
	}
}

func TestSharedMemory(t *testing.T) {
	d := open(t, 0)
	x := d.upload([]float32{1, 2, 3, 4, 5, 6, 7, 8})
	check(t, d.tryLaunch("sample_dynamic", 1, 8, 4*8, cu.NoStream, uint64(x), 8))
	if got := fmt.Sprint(d.download(x, 8)); got != "[8 7 6 5 4 3 2 1]" {
		t.Errorf("reversed: %s", got)
	}
	if err := d.tryLaunch("sample_dynamic", 1, 8, 1<<20, cu.NoStream, uint64(x), 8); !errors.Is(err, cu.InvalidValue) {
		t.Errorf("a megabyte of shared memory: %v", err)
	}
	out := d.alloc(32)
	d.launch("sample_stale", 1, 32, cu.NoStream, uint64(out))
	got := d.download(out, 32)
	if got[0] != 1 || !math.IsNaN(float64(got[1])) || !math.IsNaN(float64(got[31])) {
		t.Errorf("shared memory that nobody has written: %v", got)
	}
	if err := d.tryLaunch("sample_stale", 1, 1025, 0, cu.NoStream, uint64(out)); !errors.Is(err, cu.InvalidValue) {
		t.Errorf("1025 threads: %v", err)
	}
}

// TestRace: a barrier that is missing is seen in either order of threads.
func TestRace(t *testing.T) {
	for _, order := range []string{"ascending", "descending"} {
		t.Setenv("RP_EMU_THREADS", order)
		d := open(t, 0)
		out := d.alloc(64)
		d.launch("sample_race", 1, 64, cu.NoStream, uint64(out))
		wrong := 0
		for i, v := range d.download(out, 64) {
			if v != float32(63-i) {
				wrong++
			}
		}
		if wrong != 32 {
			t.Errorf("%s: %d threads got what was not yet written, want 32", order, wrong)
		}
	}
}

func TestVectors(t *testing.T) {
	d := open(t, 0)
	x := make([]float32, 128)
	for i := range x {
		x[i] = float32(i % 4)
	}
	out := d.alloc(32)
	d.launch("sample_vector", 1, 32, cu.NoStream, uint64(d.upload(x)), uint64(out))
	for i, v := range d.download(out, 32) {
		if math.Abs(float64(v)-(32*6*0.5+1)) > 1e-5 {
			t.Errorf("thread %d: %v", i, v)
		}
	}
}

// TestWait: without an event between two streams the second may be first, and is.
func TestWait(t *testing.T) {
	for _, wait := range []bool{false, true} {
		d := open(t, 0)
		first, second := d.stream(), d.stream()
		x, y := d.upload(make([]float32, 4)), d.alloc(4)
		event, err := cu.MakeEvent(cu.DisableTiming)
		check(t, err)
		d.add(first, x, 1)
		check(t, event.Record(first))
		if wait {
			check(t, second.Wait(event, 0))
		}
		check(t, cu.MemcpyDtoDAsync(y, x, 16, second))
		check(t, second.Synchronize())
		want := float32(1)
		if !wait && lazy() {
			want = 0
		}
		if got := d.download(y, 4)[0]; got != want {
			t.Errorf("wait %v: got %v, want %v", wait, got, want)
		}
		if got := d.download(x, 4)[0]; got != 1 {
			t.Errorf("wait %v: the first stream's operation has not run: %v", wait, got)
		}
	}
}

// TestNull: the stream NULL waits for no stream that is NonBlocking.
func TestNull(t *testing.T) {
	d := open(t, 0)
	s := d.stream()
	x := d.upload(make([]float32, 4))
	d.add(s, x, 1)
	out := make([]float32, 4)
	check(t, cu.MemcpyDtoH(unsafe.Pointer(&out[0]), x, 16))
	if lazy() != (out[0] == 0) {
		t.Errorf("a copy that waits for nothing: %v", out)
	}
	blocking, err := cu.MakeStream(cu.DefaultStream)
	check(t, err)
	d.add(blocking, x, 1)
	check(t, cu.MemcpyDtoH(unsafe.Pointer(&out[0]), x, 16))
	if want := map[bool]float32{true: 1, false: 2}[lazy()]; out[0] != want {
		t.Errorf("behind a stream that blocks: %v, want %v", out, want)
	}
}

// TestHostMemory: pinned memory is read when the copy runs, other memory when it is called.
func TestHostMemory(t *testing.T) {
	d := open(t, 0)
	s := d.stream()
	host, free := pinned(4)
	defer free()
	pageable := []float32{1, 1, 1, 1}
	copy(host, pageable)
	x, y := d.alloc(4), d.alloc(4)
	check(t, cu.MemcpyHtoDAsync(x, unsafe.Pointer(&host[0]), 16, s))
	check(t, cu.MemcpyHtoDAsync(y, unsafe.Pointer(&pageable[0]), 16, s))
	host[0], pageable[0] = 2, 2
	check(t, s.Synchronize())
	if want := map[bool]float32{true: 2, false: 1}[lazy()]; d.download(x, 4)[0] != want {
		t.Errorf("pinned memory that was changed too early: want %v", want)
	}
	if d.download(y, 4)[0] != 1 {
		t.Error("pageable memory was read too late")
	}

	d.add(s, x, 3)
	check(t, cu.MemcpyDtoHAsync(unsafe.Pointer(&host[0]), x, 16, s))
	if lazy() && host[1] != 1 {
		t.Error("a copy to pinned memory was done before it was waited for")
	}
	check(t, cu.MemcpyDtoHAsync(unsafe.Pointer(&pageable[0]), x, 16, s))
	if pageable[1] != 4 || host[1] != 4 {
		t.Errorf("a copy to pageable memory does not wait: %v, %v", pageable, host)
	}
}

func TestEvents(t *testing.T) {
	d := open(t, 0)
	s := d.stream()
	x := d.upload(make([]float32, 4))
	var events [2]cu.Event
	for i := range events {
		var err error
		events[i], err = cu.MakeEvent(cu.DefaultEvent)
		check(t, err)
		check(t, events[i].Record(s))
		d.add(s, x, 1)
	}
	if _, err := events[0].Elapsed(events[1]); lazy() && !errors.Is(err, cu.NotReady) {
		t.Errorf("time of an event that has not come: %v", err)
	}
	n := 0
	for errors.Is(events[1].Query(), cu.NotReady) {
		if n++; n > 10 {
			t.Fatal("asking again and again does not end")
		}
	}
	if ms, err := events[0].Elapsed(events[1]); err != nil || ms < 0 {
		t.Errorf("%v ms, %v", ms, err)
	}
}

func TestOtherCalls(t *testing.T) {
	d := open(t, 0)
	s := d.stream()
	x := d.alloc(4)
	check(t, cu.MemsetD32Async(x, uint(math.Float32bits(2)), 4, s))
	check(t, s.Synchronize())
	if code := addPacked(*(*uintptr)(unsafe.Pointer(&d.module)), uint64(x), 3); code != 0 {
		t.Errorf("packed arguments: %d", code)
	}
	if got := d.download(x, 4)[3]; got != 5 {
		t.Errorf("got %v, want 5", got)
	}
	check(t, cu.MemsetD8(x, 0, 16))
	if got := d.download(x, 4)[3]; got != 0 {
		t.Errorf("got %v, want 0", got)
	}

	host := []float32{1, 2, 3, 4}
	p, release := registered(host)
	d.add(s, cu.DevicePtr(p), 1)
	if code := release(); code != 0 || host[3] != 5 {
		t.Errorf("registered memory: %d, %v", code, host)
	}
	if code := release(); code != 713 {
		t.Errorf("registered no more: %d", code)
	}

	f, err := d.module.Function("sample_add")
	check(t, err)
	if n, err := f.Attribute(cu.FnMaxThreadsPerBlock); n != 1024 || err != nil {
		t.Errorf("%d threads a block, %v", n, err)
	}
	if n, err := cu.Device(0).Attribute(cu.WarpSize); n != 32 || err != nil {
		t.Errorf("%d threads a warp, %v", n, err)
	}
	if n := cu.Version(); n != 13000 {
		t.Errorf("version %d", n)
	}
	first, err := cu.Device(0).RetainPrimaryCtx()
	check(t, err)
	second, err := cu.Device(0).RetainPrimaryCtx()
	check(t, err)
	if first != second {
		t.Error("a device has two primary contexts")
	}
	check(t, cu.Device(0).ReleasePrimaryCtx())
	check(t, cu.Device(0).ReleasePrimaryCtx())
	if err := cu.Device(0).ReleasePrimaryCtx(); !errors.Is(err, cu.InvalidContext) {
		t.Errorf("released once more: %v", err)
	}
}

func TestMemory(t *testing.T) {
	t.Setenv("RP_EMU_MEMORY", "4096")
	d := open(t, 0)
	x := d.alloc(512)
	if free, total, err := cu.MemInfo(); err != nil || free != 2048 || total != 4096 {
		t.Errorf("free %d, total %d, %v", free, total, err)
	}
	if _, err := cu.MemAlloc(2049); !errors.Is(err, cu.OutOfMemory) {
		t.Errorf("more than there is: %v", err)
	}
	if v := d.download(x, 512); !math.IsNaN(float64(v[0])) || !math.IsNaN(float64(v[511])) {
		t.Errorf("memory without contents: %v", v[:4])
	}
	check(t, cu.MemFree(x))
	if free, _, _ := cu.MemInfo(); free != 4096 {
		t.Errorf("%d bytes free", free)
	}
	if err := cu.MemFree(x); !errors.Is(err, cu.InvalidValue) {
		t.Errorf("freed twice: %v", err)
	}
}

func TestDevices(t *testing.T) {
	t.Setenv("RP_EMU_DEVICES", "2")
	zero, one := open(t, 0), open(t, 1)
	if n, err := cu.NumDevices(); n != 2 || err != nil {
		t.Fatalf("%d devices, %v", n, err)
	}
	if name, err := cu.Device(1).Name(); name != "Emulated device 1" || err != nil {
		t.Errorf("name %q, %v", name, err)
	}
	major, minor, err := cu.Device(1).ComputeCapability()
	if major != 8 || minor != 0 || err != nil {
		t.Errorf("compute capability %d.%d, %v", major, minor, err)
	}
	before := emulator.Count(1)
	one.alloc(100)
	if after := emulator.Count(1); after.DeviceBytes != before.DeviceBytes+400 {
		t.Errorf("device 1: %+v, then %+v", before, after)
	}
	if free, total, _ := cu.MemInfo(); total-free != 400 {
		t.Errorf("device 1 has %d bytes in use", total-free)
	}
	check(t, cu.SetCurrentContext(zero.ctx))
	if free, total, _ := cu.MemInfo(); total != free {
		t.Errorf("device 0 has %d bytes in use", total-free)
	}
}
