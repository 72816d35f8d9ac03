//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// Name implements [gpu.Device].
func (d *device) Name() string { return d.name }

// Kernel is "cuda-9.0" on a card of that compute capability. The kernels add in a fixed order, but the driver compiles them for the card.
func (d *device) Kernel() string { return fmt.Sprintf("cuda-%d.%d", d.major, d.minor) }

// Memory implements [gpu.Device].
func (d *device) Memory() gpu.Memory {
	var free int64
	_ = d.do(func() (err error) {
		free, _, err = cu.MemInfo()
		return err
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	return gpu.Memory{Total: d.total, Free: free, Used: d.used}
}

// failure makes an error of the driver's a [gpu.Error], and remembers if the device is lost.
func (d *device) failure(operation, what string, err error) error {
	if _, ok := errors.AsType[*gpu.Error](err); ok {
		return err
	}
	if number(err) >= 0 {
		err = reason(err)
	}
	failed := &gpu.Error{Device: d.name, Operation: operation, What: what, Err: err}
	if errors.Is(err, gpu.ErrLost) {
		d.mu.Lock()
		if d.lost == nil {
			d.lost = err
		}
		d.mu.Unlock()
	}
	return failed
}

// isLost returns why nothing works any more.
func (d *device) isLost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// alloc allocates bytes within the budget.
func (d *device) alloc(operation, what string, bytes int64) (address uint64, err error) {
	if err := d.reserve(bytes); err != nil {
		return 0, d.failure(operation, what, err)
	}
	var p cu.DevicePtr
	if err = d.do(func() (err error) { p, err = cu.MemAlloc(bytes); return err }); err != nil {
		d.mu.Lock()
		d.used -= bytes
		d.mu.Unlock()
		return 0, d.failure(operation, what, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sizes[uint64(p)] = bytes
	return uint64(p), nil
}

func (d *device) reserve(bytes int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil {
		return d.lost
	}
	if bytes > d.budget-d.used {
		return fmt.Errorf("%w: %d bytes wanted, %d of the budget of %d are used", gpu.ErrMemory, bytes, d.used, d.budget)
	}
	d.used += bytes
	return nil
}

// release frees what alloc has returned. On a lost device nothing is freed, but it counts no more.
func (d *device) release(address uint64) {
	d.mu.Lock()
	bytes, ok := d.sizes[address]
	delete(d.sizes, address)
	d.mu.Unlock()
	if !ok {
		return
	}
	err := d.do(func() error { return cu.MemFree(cu.DevicePtr(address)) })
	if err != nil {
		_ = d.failure("free", "", err)
	}
	d.mu.Lock()
	d.used -= bytes
	d.mu.Unlock()
}

// pin allocates pinned memory. It must be called by the device's goroutine.
func (d *device) pin(n int) (*pinned, error) {
	p, err := newPinned(n)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.host[p] = true
	return p, nil
}

// unpin must be called by the device's goroutine.
func (d *device) unpin(p *pinned) {
	if p == nil {
		return
	}
	d.mu.Lock()
	delete(d.host, p)
	d.mu.Unlock()
	if err := p.free(); err != nil {
		_ = d.failure("free", "", err)
	}
}

// event makes an event that Close destroys. It must be called by the device's goroutine.
func (d *device) event() (cu.Event, error) { return d.eventWith(cu.DisableTiming) }

func (d *device) eventWith(flags cu.EventFlags) (cu.Event, error) {
	e, err := cu.MakeEvent(flags)
	if err == nil {
		d.mu.Lock()
		d.events[handle(e)] = e
		d.mu.Unlock()
	}
	return e, err
}

// dropEvent must be called by the device's goroutine.
func (d *device) dropEvent(e cu.Event) {
	if handle(e) == nil {
		return
	}
	d.mu.Lock()
	delete(d.events, handle(e))
	d.mu.Unlock()
	_ = cu.DestroyEvent(&e)
}

// Alloc implements [gpu.Device].
func (d *device) Alloc(what string, n int) (gpu.Buffer, error) {
	if n == 0 {
		return gpu.Buffer{What: what}, nil
	}
	address, err := d.alloc("alloc", what, 4*int64(n))
	return gpu.Buffer{Addr: address, N: n, What: what}, err
}

// Free implements [gpu.Device].
func (d *device) Free(b gpu.Buffer) {
	if b.Addr != 0 {
		d.release(b.Addr)
	}
}

// Matrix implements [gpu.Device]: it copies the weights to the card.
func (d *device) Matrix(what string, t quant.Type, rows, cols int, data []byte) (gpu.Matrix, error) {
	m, err := compute.NewMatrix(t, rows, cols, data)
	if err != nil {
		return gpu.Matrix{}, &gpu.Error{Device: d.name, Operation: "matrix", What: what, Err: err}
	}
	address, err := d.alloc("matrix", what, int64(len(data)))
	if err != nil {
		return gpu.Matrix{}, err
	}
	if err := d.upload(address, data); err != nil {
		d.release(address)
		return gpu.Matrix{}, d.failure("matrix", what, err)
	}
	return gpu.Matrix{Matrix: m, Addr: address, What: what}, nil
}

// upload copies data to the card, and waits.
func (d *device) upload(address uint64, data []byte) error {
	d.uploading.Lock()
	defer d.uploading.Unlock()
	for len(data) > 0 {
		n := copy(d.staging.bytes, data)
		err := d.do(func() error { return cu.MemcpyHtoDAsync(cu.DevicePtr(address), d.staging.at(0), int64(n), d.in) })
		if err == nil {
			err = waitStream(d.context, d.in)
		}
		if err != nil {
			return err
		}
		address, data = address+uint64(n), data[n:]
	}
	return nil
}

// view is the memory of numbers.
func view[T any](s []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}
