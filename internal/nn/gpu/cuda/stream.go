//go:build cuda

package cuda

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

const (
	ringBytes = 4 << 20 // of a stream's pinned memory
	queueLen  = 32      // operations that are handed to the device's goroutine together
	recentLen = 8       // kernels that an error names which came late
)

// operation is one that the device's goroutine is to start.
type operation struct {
	name, what string // for errors; a kernel's name
	grid       [3]int
	block      int
	args       []uint64
	run        func() error // not a kernel: what to do
}

// reading is bytes that are to be copied to the program when the stream has been waited for.
type reading struct{ to, from []byte }

// memory is some of the card's that grows as needed.
type memory struct {
	what    string
	address uint64
	bytes   int
}

// stream implements [gpu.Stream]. Operations wait in a queue. What the program gives is copied at once, to a ring of pinned memory, of
// which the card has a twin.
type stream struct {
	d    *device
	cu   cu.Stream
	ring *pinned
	twin uint64
	used int // bytes of the ring since the stream was waited for

	readings []reading
	probes   map[*compute.Probe]uint64 // their columns on the card
	columns  memory                    // of probes
	place    int                       // bytes of columns that are taken
	more     []uint64                  // columns that had no place there
	batches  [2]batch
	seen     map[*pool][]int // the writes that the stream waits for already, of each group of layers

	partial, sums, within, norms, kept, large, numbers memory

	trace func(operation) // nil, or told of each kernel that was started, by the device's goroutine

	sending sync.Mutex

	mu     sync.Mutex // of the following
	queue  []operation
	err    error    // of the first operation that failed
	recent []string // kernels that were launched since the stream was waited for
	last   operation
	closed bool
}

// NewStream implements [gpu.Device].
func (d *device) NewStream(int) (gpu.Stream, error) {
	s := &stream{d: d, probes: map[*compute.Probe]uint64{}, seen: map[*pool][]int{}}
	for name, m := range s.memories() {
		m.what = name
	}
	var err error
	if s.twin, err = d.alloc("stream", "staging", ringBytes); err != nil {
		return nil, err
	}
	err = d.do(func() (err error) {
		if s.ring, err = d.pin(ringBytes); err != nil {
			return err
		}
		s.cu, err = cu.MakeStream(cu.NonBlocking)
		return err
	})
	if err != nil {
		_ = d.do(func() error { d.unpin(s.ring); return nil })
		d.release(s.twin)
		return nil, d.failure("stream", "", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams[s] = true
	return s, nil
}

func (s *stream) memories() map[string]*memory {
	return map[string]*memory{
		"attention's parts": &s.partial, "attention's sums": &s.sums, "sums of a probe": &s.within, "row weights of a probe": &s.norms,
		"kept rows": &s.kept, "staging": &s.large, "results": &s.numbers, "columns of probes": &s.columns,
		"pages of a batch": &s.batches[0].tables, "pages of another batch": &s.batches[1].tables,
	}
}

// Close implements [gpu.Stream].
func (s *stream) Close() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return
	}
	s.drain()
	s.dropProbes()
	for _, m := range s.memories() {
		s.d.release(m.address)
	}
	s.d.release(s.twin)
	s.d.mu.Lock()
	delete(s.d.streams, s)
	s.d.mu.Unlock()
	_ = s.d.do(func() error {
		s.d.unpin(s.ring)
		return s.cu.Destroy()
	})
}

// fail makes the stream fail if it has not yet.
func (s *stream) fail(name, what string, err error) {
	err = s.d.failure(name, what, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

func (s *stream) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// take returns the stream's error and forgets it.
func (s *stream) take() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.err
	s.err = nil
	return err
}

// push queues an operation.
func (s *stream) push(o operation) {
	s.mu.Lock()
	full := false
	if s.err == nil {
		s.queue = append(s.queue, o)
		full = len(s.queue) >= queueLen
	}
	s.mu.Unlock()
	if full {
		s.flush()
	}
}

// launch queues a kernel. what names the tensor in errors.
func (s *stream) launch(name, what string, grid [3]int, block int, args ...uint64) {
	if grid[0] == 0 || grid[1] == 0 || grid[2] == 0 {
		return
	}
	s.push(operation{name: name, what: what, grid: grid, block: block, args: args})
}

// flush hands the queue to the device's goroutine. It may be called by any goroutine.
func (s *stream) flush() {
	s.sending.Lock() // so that queues arrive in order
	defer s.sending.Unlock()
	s.mu.Lock()
	queue := s.queue
	s.queue = nil
	s.mu.Unlock()
	if len(queue) == 0 {
		return
	}
	s.d.post(func() { s.start(queue) })
}

// start starts operations. It is called by the device's goroutine.
func (s *stream) start(queue []operation) {
	for _, o := range queue {
		if s.failed() {
			return
		}
		err := s.d.isLost()
		if err == nil {
			if o.run != nil {
				err = o.run()
			} else {
				err = s.d.launch(o, s.cu)
			}
		}
		if err != nil {
			s.fail(o.name, o.what, s.blame(err))
			return
		}
		s.mu.Lock()
		if o.run == nil {
			if len(s.recent) == recentLen {
				s.recent = slices.Delete(s.recent, 0, 1)
			}
			s.recent, s.last = append(s.recent, o.name), o
		}
		s.mu.Unlock()
		if o.run == nil && s.trace != nil {
			s.trace(o)
		}
	}
}

// launch starts a kernel. It is called by the device's goroutine.
func (d *device) launch(o operation, on cu.Stream) error {
	args := make([]unsafe.Pointer, len(o.args))
	for i := range args {
		args[i] = unsafe.Pointer(&o.args[i])
	}
	return d.kernels[o.name].Launch(o.grid[0], o.grid[1], o.grid[2], o.block, 1, 1, 0, on, args)
}

// drain waits for all operations and copies what was read to the program.
func (s *stream) drain() {
	s.flush()
	// What the goroutine has been given is started before this.
	err := s.d.do(func() error { return nil })
	if err == nil {
		if err = s.d.isLost(); err == nil {
			err = waitStream(s.d.context, s.cu)
		}
	}
	if err != nil {
		s.late(err)
	}
	if !s.failed() {
		for _, r := range s.readings {
			copy(r.to, r.from)
		}
	}
	s.readings, s.used = s.readings[:0], 0
	s.mu.Lock()
	s.recent, s.last = s.recent[:0], operation{}
	s.mu.Unlock()
}

// late takes an error that came when the stream was waited for. It is that of one of the last operations.
func (s *stream) late(err error) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last.name == "" {
		last.name = "sync"
	}
	s.fail(last.name, last.what, s.blame(err))
}

// blame adds to an error by which the device is lost what may be the cause: one of the last kernels, whichever call returned it.
func (s *stream) blame(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !lost(number(err)) || len(s.recent) == 0 {
		return err
	}
	return fmt.Errorf("%w; last kernels: %s", reason(err), strings.Join(s.recent, ", "))
}

// Sync implements [gpu.Stream].
func (s *stream) Sync() error {
	type result struct {
		probe *compute.Probe
		sums  []float32
	}
	results := make([]result, 0, len(s.probes))
	for p, address := range s.probes {
		r := result{p, make([]float32, len(p.Sums))}
		s.read(view(r.sums), address, "probe")
		results = append(results, r)
	}
	s.drain()
	s.dropProbes()
	if err := s.take(); err != nil {
		return err
	}
	for _, r := range results {
		for i, x := range r.sums {
			if r.probe.Most {
				r.probe.Sums[i] = max(r.probe.Sums[i], x)
			} else {
				r.probe.Sums[i] += x
			}
		}
	}
	return nil
}

// need makes m at least so large. Its contents are lost if it grows. It reports false if the stream has failed.
func (s *stream) need(m *memory, bytes int) bool {
	if err := s.grow(m, bytes); err != nil {
		s.fail("alloc", m.what, err)
	}
	return !s.failed()
}

// grow makes m at least so large, or empty if there is no room.
func (s *stream) grow(m *memory, bytes int) error {
	if bytes <= m.bytes {
		return nil
	}
	if m.address != 0 {
		s.drain()
		s.d.release(m.address)
		*m = memory{what: m.what}
	}
	address, err := s.d.alloc("alloc", m.what, int64(bytes))
	if err == nil {
		m.address, m.bytes = address, bytes
	}
	return err
}

// stage returns the place of n bytes of the ring, which stay until the stream is waited for.
func (s *stream) stage(n int) int {
	if s.used+n > ringBytes {
		s.drain()
	}
	at := s.used
	s.used += (n + 255) / 256 * 256
	return at
}

// send copies bytes of the program to the card.
func (s *stream) send(to uint64, bytes []byte, what string) {
	for len(bytes) > 0 && !s.failed() {
		n := min(len(bytes), ringBytes/2)
		at := s.stage(n)
		copy(s.ring.bytes[at:], bytes[:n])
		address := to
		s.push(operation{name: "write", what: what, run: func() error {
			return cu.MemcpyHtoDAsync(cu.DevicePtr(address), s.ring.at(at), int64(n), s.cu)
		}})
		to, bytes = to+uint64(n), bytes[n:]
	}
}

// lend copies bytes of the program to the card, for the next kernel alone, and returns where they are.
func (s *stream) lend(bytes []byte, what string) uint64 {
	if len(bytes) > ringBytes/2 {
		if s.need(&s.large, len(bytes)) {
			s.send(s.large.address, bytes, what)
		}
		return s.large.address
	}
	at := s.stage(len(bytes))
	s.used -= (len(bytes) + 255) / 256 * 256 // send takes the same place
	s.send(s.twin+uint64(at), bytes, what)
	return s.twin + uint64(at)
}

// read copies from the card to the program when the stream is waited for.
func (s *stream) read(to []byte, from uint64, what string) {
	for len(to) > 0 && !s.failed() {
		n := min(len(to), ringBytes/2)
		at := s.stage(n)
		address := from
		s.push(operation{name: "read", what: what, run: func() error {
			return cu.MemcpyDtoHAsync(s.ring.at(at), cu.DevicePtr(address), int64(n), s.cu)
		}})
		s.readings = append(s.readings, reading{to[:n], s.ring.bytes[at:][:n]})
		from, to = from+uint64(n), to[n:]
	}
}

// Write implements [gpu.Stream].
func (s *stream) Write(to gpu.Buffer, floats []float32) {
	s.send(to.Addr, view(floats[:min(len(floats), to.N)]), to.What)
}

// Read implements [gpu.Stream].
func (s *stream) Read(floats []float32, from gpu.Buffer) {
	s.read(view(floats[:min(len(floats), from.N)]), from.Addr, from.What)
}
