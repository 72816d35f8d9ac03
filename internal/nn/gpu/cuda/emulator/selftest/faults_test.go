//go:build cuda

package selftest

import (
	"bytes"
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/ragpilot/ragpilot/internal/nn/gpu/cuda/emulator"
)

func TestLive(t *testing.T) {
	before := emulator.Live{}
	if emulator.Present() {
		before = emulator.Count(0)
	}
	d := open(t, 0)
	x := d.alloc(10)
	host, free := pinned(5)
	host[0] = 1
	s := d.stream()
	event, err := cu.MakeEvent(cu.DefaultEvent)
	check(t, err)
	want := before
	want.DeviceBytes += 40
	want.HostBytes += 20
	want.Streams++
	want.Events++
	want.Modules++
	if got := emulator.Count(0); got != want {
		t.Errorf("live %+v, want %+v", got, want)
	}
	check(t, cu.MemFree(x))
	free()
	check(t, cu.DestroyEvent(&event))
	check(t, s.Destroy())
	check(t, d.module.Unload())
	if got := emulator.Count(0); got != before {
		t.Errorf("live at the end %+v, want %+v", got, before)
	}
	d.stream()
	check(t, d.ctx.Destroy())
	if got := emulator.Count(0); got.Streams != before.Streams+1 {
		t.Errorf("a stream that the context took with it is not counted: %+v", got)
	}
	d.ctx, err = cu.Device(0).MakeContext(cu.SchedAuto)
	check(t, err)
}

func TestLaunchFault(t *testing.T) {
	d := open(t, 0)
	x := d.upload(make([]float32, 4))
	t.Setenv("RP_EMU_FAULT", "launch:sample_add:2:701")
	arguments := []uint64{uint64(x), uint64(math.Float32bits(1)), 4}
	for i, want := range []error{nil, cu.LaunchOutOfResources, nil} {
		if err := d.tryLaunch("sample_add", 1, block, 0, cu.NoStream, arguments...); !errors.Is(err, want) {
			t.Errorf("launch %d: %v, want %v", i, err, want)
		}
	}
	if got := d.download(x, 4)[0]; got != 2 {
		t.Errorf("two launches of three have run, and the sum is %v", got)
	}
	t.Setenv("RP_EMU_FAULT", "launch:*:1:1;copy:1:999")
	if err := d.tryLaunch("sample_add", 1, block, 0, cu.NoStream, arguments...); !errors.Is(err, cu.InvalidValue) {
		t.Errorf("a launch of any kernel: %v", err)
	}
	out := make([]float32, 4)
	if err := cu.MemcpyDtoH(unsafe.Pointer(&out[0]), x, 16); !errors.Is(err, cu.Unknown) {
		t.Errorf("a copy: %v", err)
	}
}

// TestAsyncFault: the error comes with what waits, and stays.
func TestAsyncFault(t *testing.T) {
	t.Setenv("RP_EMU_DEVICES", "2")
	d, other := open(t, 0), open(t, 1)
	check(t, cu.SetCurrentContext(d.ctx))
	before := emulator.Count(0)
	s := d.stream()
	x := d.upload(make([]float32, 4))
	t.Setenv("RP_EMU_FAULT", "async:sample_add:1:700")
	d.add(s, x, 1)
	if lazy() {
		d.add(s, x, 1)
	}
	if err := s.Synchronize(); !errors.Is(err, cu.IllegalAddress) {
		t.Errorf("synchronize: %v", err)
	}
	_, err := cu.MemAlloc(4)
	if !errors.Is(err, cu.IllegalAddress) {
		t.Errorf("allocation afterwards: %v", err)
	}
	if err := cu.MemFree(x); !errors.Is(err, cu.IllegalAddress) {
		t.Errorf("free afterwards: %v", err)
	}
	check(t, cu.SetCurrentContext(other.ctx))
	other.alloc(1)
	check(t, cu.SetCurrentContext(d.ctx))
	check(t, d.ctx.Destroy())
	before.Modules-- // of d
	if got := emulator.Count(0); got != before {
		t.Errorf("live when a failed context is gone: %+v, want %+v", got, before)
	}
	d.ctx, err = cu.Device(0).MakeContext(cu.SchedAuto)
	check(t, err)
}

func TestAllocationFault(t *testing.T) {
	open(t, 0)
	for range 2 { // the count begins again with each change
		t.Setenv("RP_EMU_FAULT", "alloc:2:2")
		for i, want := range []error{nil, cu.OutOfMemory, nil} {
			if _, err := cu.MemAlloc(4); !errors.Is(err, want) {
				t.Errorf("allocation %d: %v, want %v", i, err, want)
			}
		}
		t.Setenv("RP_EMU_FAULT", "")
		_, err := cu.MemAlloc(4)
		check(t, err)
	}
}

func TestLoadFault(t *testing.T) {
	d := open(t, 0)
	t.Setenv("RP_EMU_FAULT", "load:1:218")
	log := cu.JITErrorLogBuffer{Buffer: make([]byte, 200)}
	if _, err := cu.LoadDataEx(image, &log); !errors.Is(err, cu.InvalidPtx) {
		t.Errorf("load: %v", err)
	}
	if !bytes.HasPrefix(log.Buffer, []byte("ptxas")) {
		t.Errorf("log: %q", log.Buffer)
	}
	if _, err := cu.LoadDataEx("nonsense", &log); !errors.Is(err, cu.InvalidPtx) || !bytes.Contains(log.Buffer, []byte("Missing .version")) {
		t.Errorf("nonsense: %v, %q", err, log.Buffer)
	}
	for _, kernel := range []string{"sample_absent", "sample", "other"} {
		if _, err := d.module.Function(kernel); !errors.Is(err, cu.NotFound) {
			t.Errorf("kernel %s: %v", kernel, err)
		}
	}
}

func TestNotEmulated(t *testing.T) {
	open(t, 0)
	if _, err := cu.MemAllocManaged(4, cu.AttachGlobal); err == nil || !strings.Contains(err.Error(), "34") {
		t.Errorf("a call that is not emulated: %v", err)
	}
}

// mistakes end the program, with what it prints.
var mistakes = map[string]struct {
	do   func(d *device)
	want string
}{
	"behind": {func(d *device) {
		d.launch("sample_write", 1, 1, cu.NoStream, uint64(d.alloc(10)), 10)
		_ = cu.Synchronize()
	}, "bytes behind an allocation of 40 bytes of device memory"},
	"in front": {func(d *device) {
		d.launch("sample_write", 1, 1, cu.NoStream, uint64(d.alloc(10)), uint64(math.MaxUint32))
		_ = cu.Synchronize()
	}, "in front of an allocation of 40 bytes"},
	"behind pinned memory": {func(*device) {
		host, free := pinned(3)
		*(*float32)(unsafe.Add(unsafe.Pointer(&host[0]), 12)) = 1
		free()
	}, "behind an allocation of 12 bytes of pinned memory"},
	"freed": {func(d *device) {
		x := d.alloc(10)
		check(d.t, cu.MemFree(x))
		d.launch("sample_write", 1, 1, cu.NoStream, uint64(x), 0)
	}, "it was freed, and had 40 bytes"},
	"freed, as a number": {func(d *device) {
		x := d.alloc(10)
		d.launch("sample_number", 1, 1, cu.NoStream, uint64(x))
		check(d.t, cu.MemFree(x))
		d.launch("sample_number", 1, 1, cu.NoStream, uint64(x))
	}, "kernel sample_number, argument 0: 0 bytes"},
	"in freed memory": {func(d *device) {
		x, y := d.alloc(1024), d.alloc(1024)
		check(d.t, cu.MemFree(y))
		d.launch("sample_write", 1, 1, cu.NoStream, uint64(x), uint64((y-x)/4))
		check(d.t, cu.Synchronize())
		emulator.Check()
	}, "freed memory was written: 4096 bytes"},
	"no memory": {func(d *device) {
		d.launch("sample_write", 1, 1, cu.NoStream, uint64(d.alloc(10)), 1<<30)
		_ = cu.Synchronize()
	}, "kernel sample_write, block (0, 0, 0), thread (0, 0, 0): signal 11"},
	"copy": {func(d *device) {
		x := make([]float32, 11)
		_ = cu.MemcpyHtoD(d.alloc(10), unsafe.Pointer(&x[0]), 44)
	}, "a copy to the device: 44 bytes"},
	"host memory": {func(d *device) {
		x := new([10]float32)
		d.launch("sample_write", 1, 1, cu.NoStream, uint64(uintptr(unsafe.Pointer(x))), 0)
	}, "kernel sample_write, argument 0"},
	"other device": {func(d *device) {
		x := d.alloc(10)
		open(d.t, 1).launch("sample_write", 1, 1, cu.NoStream, uint64(x), 0)
	}, "0 bytes into 40 bytes of device memory of device 0"},
	"stuck": {func(d *device) {
		d.launch("sample_stuck", 1, 64, cu.NoStream, uint64(d.alloc(10)))
		_ = cu.Synchronize()
	}, "kernel sample_stuck, block (0, 0, 0): threads wait for each other"},
}

func TestMistakes(t *testing.T) {
	if name := os.Getenv("RAGPILOT_TEST_MISTAKE"); name != "" {
		mistakes[name].do(open(t, 0))
		return
	}
	open(t, 0)
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMistakes$")
			c.Env = append(os.Environ(), "RAGPILOT_TEST_MISTAKE="+name, "RP_EMU_DEVICES=2")
			out, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "emulated driver: ") || !strings.Contains(string(out), m.want) {
				t.Errorf("%v: %.1000s", err, out)
			}
		})
	}
}

func TestNoDevice(t *testing.T) {
	open(t, 0)
	for variable, value := range map[string]string{"RP_EMU_FAULT": "init:0:100", "RP_EMU_DEVICES": "0"} {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		c.Env = append(os.Environ(), variable+"="+value)
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "NoDevice") {
			t.Errorf("%s=%s: %v, %s", variable, value, err, out)
		}
	}
}
