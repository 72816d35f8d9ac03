//go:build cuda

package cuda

import (
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

//go:embed kernels.ptx
var ptx string

// needed is the oldest version of the driver's interface that knows our PTX.
const needed = 12010

func init() { gpu.RegisterCUDA(gpu.Driver{Open: Open, Diagnose: Diagnose, Measure: Measure}) }

// device is a card.
type device struct {
	number  int
	name    string
	context cu.CUContext
	module  cu.Module
	log     string // of the driver when it compiled the kernels
	kernels map[string]cu.Function
	major   int // compute capability
	minor   int

	calls chan func() // to the goroutine
	ended chan struct{}

	in, out cu.Stream // for copies of pages

	uploading sync.Mutex // of staging
	staging   *pinned

	mu                  sync.Mutex // of the following
	budget, total, used int64
	sizes               map[uint64]int64 // of what is allocated
	host                map[*pinned]bool
	events              map[unsafe.Pointer]cu.Event
	streams             map[*stream]bool
	pools               map[*pool]bool
	lost                error
}

// stagingBytes is how much memory uploads of weights go through.
const stagingBytes = 8 << 20

// Open opens card n. The error wraps [gpu.ErrNoDevice] if there is none that can be used, and says what is missing.
func Open(n int, o gpu.Options) (gpu.Device, error) {
	d, err := open(n, o)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func open(n int, o gpu.Options) (*device, error) {
	d := &device{
		number: n, name: fmt.Sprintf("cuda:%d", n), kernels: map[string]cu.Function{}, calls: make(chan func(), 64),
		ended: make(chan struct{}), sizes: map[uint64]int64{}, host: map[*pinned]bool{}, events: map[unsafe.Pointer]cu.Event{},
		streams: map[*stream]bool{}, pools: map[*pool]bool{}, budget: o.Budget,
	}
	if err := usable(n); err != nil {
		return nil, d.failure("open", "", err)
	}
	go d.loop()
	if err := d.do(d.start); err != nil {
		err = d.failure("open", "", err)
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// usable says why there is no card n.
func usable(n int) error {
	if err := started(); err != nil {
		why := reason(err)
		if !errors.Is(why, gpu.ErrNoDevice) { // such as 803: the driver's library is newer than what the kernel has loaded
			why = fmt.Errorf("%w: CUDA error %d (%s)", gpu.ErrNoDevice, number(err), err.Error())
		}
		return fmt.Errorf("%w; it needs a card of NVIDIA and its driver for CUDA 12.1 or newer", why)
	}
	if v := cu.Version(); v < needed {
		return fmt.Errorf("%w: the driver is for CUDA %s, want 12.1 or newer", gpu.ErrNoDevice, version(v))
	}
	count, err := cu.NumDevices()
	if err != nil {
		return reason(err)
	}
	if n >= count {
		return fmt.Errorf("%w: the driver has %d cards", gpu.ErrNoDevice, count)
	}
	return nil
}

func version(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// loop is the goroutine that makes the calls.
func (d *device) loop() {
	runtime.LockOSThread()
	defer close(d.ended)
	for call := range d.calls {
		if call == nil {
			return
		}
		call()
	}
}

// errClosed is what calls return when the device has been closed.
var errClosed = errors.New("the device is closed")

// post hands f to the device's goroutine. It reports false if the device is closed.
func (d *device) post(f func()) bool {
	select {
	case d.calls <- f:
		return true
	case <-d.ended:
		return false
	}
}

// do runs f on the device's goroutine.
func (d *device) do(f func() error) error {
	result := make(chan error, 1)
	if !d.post(func() { result <- f() }) {
		return errClosed
	}
	select {
	case err := <-result:
		return err
	case <-d.ended:
		return errClosed
	}
}

// start makes the context and loads the kernels.
func (d *device) start() (err error) {
	card, err := cu.GetDevice(d.number)
	if err != nil {
		return err
	}
	if d.major, d.minor, err = card.ComputeCapability(); err != nil {
		return err
	}
	if d.major < 8 {
		return fmt.Errorf("%w: the card has compute capability %d.%d, want 8.0 or newer", gpu.ErrNoDevice, d.major, d.minor)
	}
	if d.context, err = card.MakeContext(cu.SchedAuto); err != nil {
		return err
	}
	free, total, err := cu.MemInfo()
	if err != nil {
		return err
	}
	if d.total = total; d.budget <= 0 {
		d.budget = free / 10 * 9
	}
	if err := d.load(); err != nil {
		return err
	}
	if d.in, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return err
	}
	if d.out, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return err
	}
	d.staging, err = d.pin(stagingBytes)
	return err
}

// load compiles the kernels for the card.
func (d *device) load() (err error) {
	var logs [2]*pinned // the driver keeps no addresses, but Go's own memory may not be in options
	for i := range logs {
		if logs[i], err = d.pin(16 << 10); err != nil {
			return err
		}
		defer d.unpin(logs[i])
		clear(logs[i].bytes)
	}
	text := func(i int) string {
		s, _, _ := strings.Cut(string(logs[i].bytes), "\x00")
		return strings.TrimSpace(s)
	}
	d.module, err = cu.LoadDataEx(ptx, &cu.JITInfoLogBuffer{Buffer: logs[0].bytes}, &cu.JITErrorLogBuffer{Buffer: logs[1].bytes})
	if d.log = text(0); err != nil {
		return fmt.Errorf("compile the kernels: %w: %s", reason(err), text(1))
	}
	for _, name := range kernelNames() {
		if d.kernels[name], err = d.module.Function(name); err != nil {
			return fmt.Errorf("kernel %s: %w", name, reason(err))
		}
	}
	return nil
}

// kernelNames are all that streams and pools launch.
func kernelNames() []string {
	types := quant.Types()
	names := append(make([]string, 0, 32+4*len(types)),
		"norm", "add", "add_row", "gate", "fill", "rotate", "keep", "argmax", "top_k", "store", "move", "turn", "value_norms", "row_norms",
		"kv_copy", "page_copy", "attend_64", "attend_128", "attend_256", "attend_join", "probe")
	for _, t := range types {
		for _, kind := range []string{"gemv_", "gemv8_", "tile_", "rows_"} {
			names = append(names, kind+strings.ToLower(t.String()))
		}
	}
	return names
}

// Close implements [gpu.Device].
func (d *device) Close() error {
	for _, s := range keys(&d.mu, d.streams) {
		s.Close()
	}
	for _, p := range keys(&d.mu, d.pools) {
		p.close()
	}
	var first error
	note := func(err error) {
		if first == nil && err != nil {
			first = err
		}
	}
	_ = d.do(func() error {
		if handle(d.context) == nil {
			return nil
		}
		for address := range d.sizes {
			note(cu.MemFree(cu.DevicePtr(address)))
		}
		for p := range d.host {
			note(p.free())
		}
		for _, e := range d.events {
			note(cu.DestroyEvent(&e))
		}
		for _, s := range []*cu.Stream{&d.in, &d.out} {
			if handle(*s) != nil {
				note(s.Destroy())
			}
		}
		if len(d.kernels) > 0 {
			note(d.module.Unload())
		}
		note(d.context.Destroy())
		return nil
	})
	d.post(nil)
	<-d.ended
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used = 0
	clear(d.sizes)
	clear(d.host)
	clear(d.events)
	if first != nil && d.lost == nil {
		return d.failure("close", "", first)
	}
	return nil
}

func keys[T comparable](mu *sync.Mutex, m map[T]bool) []T {
	mu.Lock()
	defer mu.Unlock()
	all := make([]T, 0, len(m))
	for k := range m {
		all = append(all, k)
	}
	return all
}

// Diagnose says what cards there are, and opens each to see whether it can be used.
func Diagnose() gpu.Diagnosis {
	var found gpu.Diagnosis
	if v := cu.Version(); v > 0 {
		found.Driver = "CUDA " + version(v)
	}
	if err := usable(0); err != nil {
		found.Problem = err.Error()
		return found
	}
	count, _ := cu.NumDevices()
	working := false
	for n := range count {
		card := gpu.Card{Device: fmt.Sprintf("cuda:%d", n)}
		if c, err := cu.GetDevice(n); err == nil {
			card.Model, _ = c.Name()
			card.Memory.Total, _ = c.TotalMem()
			if major, minor, err := c.ComputeCapability(); err == nil {
				card.Capability = fmt.Sprintf("%d.%d", major, minor)
			}
		}
		if d, err := open(n, gpu.Options{}); err != nil {
			card.Problem = err.Error()
		} else {
			card.Memory, card.Log, working = d.Memory(), d.log, true
			_ = d.Close()
		}
		found.Cards = append(found.Cards, card)
	}
	if !working {
		found.Problem = found.Cards[0].Problem
	}
	return found
}
