//go:build cuda

package cuda

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gorgonia.org/cu"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/gpu/cuda/emulator"
)

// shapes are what is measured.
type shapes struct {
	heads       compute.Heads
	layers      int
	outs, cols  int // of weights
	many        int // rows of a product and of attention, at most
	vocabulary  int
	width       int // of rows of which the largest are chosen
	set         int // bytes that no cache of the card holds
	warm, times int
}

// llama8B are the shapes of Llama-3.1-8B. A set is eight times the cache of an H200 and more.
var llama8B = shapes{
	heads: compute.Heads{Query: 32, KV: 8, Dim: 128}, layers: 32, outs: 14336, cols: 4096, many: 512, vocabulary: 128256, width: 131072,
	set: 512 << 20, warm: 20, times: 100,
}

// tiny are shapes for the emulated driver.
var tiny = shapes{
	heads: compute.Heads{Query: 4, KV: 2, Dim: 16}, layers: 2, outs: 64, cols: 256, many: 32, vocabulary: 1000, width: 1024, set: 64 << 10,
	warm: 3, times: 5,
}

// measuring is a run of [Measure].
type measuring struct {
	shapes
	ctx      context.Context
	progress func(next string)
	d        *device
	peak     float64 // floating-point operations a second
	peakText string
	events   [4]cu.Event
	random   *rand.Rand

	pool    *pool
	pages   [2][]gpu.Page // a set each
	all     []gpu.Page    // both
	floats  gpu.Buffer    // a set of random ones
	out     gpu.Buffer    // for results
	scratch gpu.Buffer    // two sets, for the copies that bound
	host    *pinned       // a set
	table   uint64        // addresses of the first set of pages, on the card

	rows []gpu.Measurement // results
}

// Measure measures the operations of card n. Each is timed by events around one launch, or the two launches of attention that is split, and
// so is the copy that bounds it, in turn. Both come behind a kernel that reads a lot: while it runs the program hands the rest to the
// driver, and what the caches have is the same for both. Different launches have different memory.
func Measure(ctx context.Context, n int, progress func(next string)) (gpu.Measurements, error) {
	d, err := open(n, gpu.Options{})
	if err != nil {
		return gpu.Measurements{}, err
	}
	m := &measuring{ctx: ctx, progress: progress, d: d, shapes: llama8B, random: rand.New(rand.NewPCG(1, 2))}
	if emulator.Present() {
		m.shapes = tiny
	}
	found := gpu.Measurements{Emulated: emulator.Present(), Driver: "CUDA " + version(cu.Version())}
	if found.Card, err = m.card(); err == nil {
		err = m.prepare()
	}
	for _, measure := range []func() error{
		m.copies, m.moves, m.attention, m.decode, m.products, m.vectors, m.choices,
	} {
		if err == nil {
			err = measure()
		}
	}
	found.Rows = m.rows
	if closed := d.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return gpu.Measurements{}, fmt.Errorf("measure: %w", err)
	}
	return found, nil
}

// card says what the card is, and what its arithmetic can do.
func (m *measuring) card() (string, error) {
	c, err := cu.GetDevice(m.d.number)
	if err != nil {
		return "", reason(err)
	}
	name, err := c.Name()
	if err != nil {
		return "", reason(err)
	}
	var found [4]int
	for i, a := range []cu.DeviceAttribute{cu.MultiprocessorCount, cu.ClockRate, cu.MemoryClockRate, cu.GlobalMemoryBusWidth} {
		if found[i], err = c.Attribute(a); err != nil {
			return "", reason(err)
		}
	}
	cores := 128 // of a multiprocessor, for float32
	if m.d.major == 8 && m.d.minor == 0 {
		cores = 64
	}
	m.peak = float64(found[0]) * float64(cores) * 2 * float64(found[1]) * 1e3
	m.peakText = fmt.Sprintf("peak %d × %d × 2 × %.3f GHz", found[0], cores, float64(found[1])/1e6)
	return fmt.Sprintf("%s, %.1f GB, compute capability %d.%d, %d multiprocessors at %d MHz, memory of %d bits at %d MHz", name,
		float64(m.d.total)/1e9, m.d.major, m.d.minor, found[0], found[1]/1000, found[3], found[2]/1000), nil
}

// prepare allocates what all measurements use.
func (m *measuring) prepare() error {
	m.progress("memory")
	m.pool = m.d.NewPool(m.heads, m.layers).(*pool)
	page := 4 * m.pool.floats
	m.set = max(4*page, min(m.set, int(m.d.budget/8))/(4*page)*(4*page))
	values := m.normal(m.pool.floats)
	for i := range m.pages {
		for range m.set / page {
			p, err := m.pool.New()
			if err != nil {
				return err
			}
			if err := m.pool.Write(p, values); err != nil {
				return err
			}
			m.pages[i] = append(m.pages[i], p)
		}
		m.all = append(m.all, m.pages[i]...)
	}
	for _, b := range []struct {
		to   *gpu.Buffer
		what string
		n    int
	}{
		{&m.floats, "numbers", m.set / 4},
		{&m.scratch, "copies", m.set / 2},
		{&m.out, "results", max(m.many*max(m.outs, m.heads.Query*m.heads.Dim), m.set/64)},
	} {
		var err error
		if *b.to, err = m.d.Alloc(b.what, b.n); err != nil {
			return err
		}
	}
	if err := m.fill(); err != nil {
		return err
	}
	return m.prepareHost()
}

// fill writes random numbers.
func (m *measuring) fill() error {
	some := view(m.normal(min(m.floats.N, 1<<20)))
	for at := 0; at < 4*m.floats.N; at += len(some) {
		if err := m.d.upload(m.floats.Addr+uint64(at), some[:min(len(some), 4*m.floats.N-at)]); err != nil {
			return m.d.failure("write", "numbers", err)
		}
	}
	return nil
}

// prepareHost allocates the program's own memory, and the events.
func (m *measuring) prepareHost() (err error) {
	if m.table, err = m.d.alloc("alloc", "pages", int64(8*len(m.pages[0]))); err != nil {
		return err
	}
	err = m.d.upload(m.table, view(addresses(m.pages[0], len(m.pages[0])*compute.PageTokens)))
	if err == nil {
		err = m.d.do(func() (err error) {
			for i := range m.events {
				if m.events[i], err = m.d.eventWith(cu.DefaultEvent); err != nil {
					return err
				}
			}
			m.host, err = m.d.pin(m.set)
			return err
		})
	}
	if err != nil {
		return m.d.failure("alloc", "pinned memory", err)
	}
	return nil
}

func (m *measuring) normal(n int) []float32 {
	floats := make([]float32, n)
	for i := range floats {
		floats[i] = float32(m.random.NormFloat64())
	}
	return floats
}

// trial is a measurement that is to be made.
type trial struct {
	gpu.Measurement
	launches [][]operation                      // that are timed, in turn
	bound    func(i int, on cu.Stream) error    // starts what bounds them; nil: a copy on the card, or arithmetic if there are Flops
	same     func(d gpu.Device) ([]byte, error) // computes something small; nil: Right and Sum are known
	within   float64                            // how far results, floats, may be from the CPU's, as a part of the largest; 0: not at all
}

// run measures what a stream has recorded, and writes it down.
func (m *measuring) run(t trial, s *stream) error {
	m.progress(t.Operation + ", " + t.Shape)
	if t.same != nil {
		var err error
		if t.Right, t.Sum, err = compared(m.d, t.same, t.within); err != nil {
			return err
		}
	}
	if t.bound == nil && t.Flops == 0 {
		half := t.Bytes / 2 / 16 * 16
		places := int64(4*m.scratch.N) / max(1, 2*half)
		if half == 0 || places == 0 {
			return fmt.Errorf("%s: a copy of %d bytes in %d", t.Operation, half, 4*m.scratch.N)
		}
		t.bound = func(i int, on cu.Stream) error {
			from := m.scratch.Addr + uint64(int64(i)%places*2*half)
			return cu.MemcpyDtoDAsync(cu.DevicePtr(from+uint64(half)), cu.DevicePtr(from), half, on)
		}
	}
	var kernels, bounds []time.Duration
	for i := range m.warm + m.times {
		kernel, err := m.once(s.cu, func() error {
			for _, o := range t.launches[i%len(t.launches)] {
				if err := m.d.launch(o, s.cu); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return m.d.failure(t.Operation, t.Shape, err)
		}
		bound := time.Duration(float64(t.Flops) / m.peak * 1e9)
		if t.bound != nil {
			if bound, err = m.once(s.cu, func() error { return t.bound(i, s.cu) }); err != nil {
				return m.d.failure("copy beside "+t.Operation, t.Shape, err)
			}
		}
		if i >= m.warm {
			kernels, bounds = append(kernels, kernel), append(bounds, bound)
		}
	}
	t.Median, t.Min, t.Bound = median(kernels), slices.Min(kernels), median(bounds)
	m.rows = append(m.rows, t.Measurement)
	return nil
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// once returns how long it takes on a stream what start starts.
func (m *measuring) once(on cu.Stream, start func() error) (time.Duration, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	err := m.d.do(func() error {
		if err := m.d.launch(m.plug(), on); err != nil {
			return err
		}
		if err := m.events[0].Record(on); err != nil {
			return err
		}
		if err := start(); err != nil {
			return err
		}
		return m.events[1].Record(on)
	})
	if err == nil {
		err = waitStream(m.d.context, on)
	}
	if err != nil {
		return 0, err
	}
	return m.between(0, 1)
}

// between is the time between two events.
func (m *measuring) between(from, to int) (took time.Duration, err error) {
	err = m.d.do(func() error {
		ms, err := m.events[from].Elapsed(m.events[to])
		took = time.Duration(ms * float64(time.Millisecond))
		return err
	})
	return took, err
}

// plug is a kernel that reads a set of bytes.
func (m *measuring) plug() operation {
	width := min(m.floats.N, 1<<17)
	rows := m.floats.N / width
	return operation{name: "argmax", grid: [3]int{rows, 1, 1}, block: 256, args: []uint64{m.out.Addr, m.scratch.Addr, uint64(width)}}
}

// record returns the kernels that each call of op, with numbers from 0, starts and that keep says yes to; nil: all. What is lent to them
// stays as it is until the stream, which is new, is used again.
func (m *measuring) record(calls int, keep func(operation) bool, op func(s *stream, i int)) (*stream, [][]operation, error) {
	made, err := m.d.NewStream(1)
	if err != nil {
		return nil, nil, err
	}
	s := made.(*stream)
	launches := make([][]operation, calls)
	at := 0
	s.trace = func(o operation) {
		if keep == nil || keep(o) {
			launches[at] = append(launches[at], o)
		}
	}
	for i := range calls {
		used := s.used
		op(s, i)
		s.flush()
		err := s.d.do(func() error { at++; return nil }) // all has been started then
		if err == nil && s.used < used {
			err = fmt.Errorf("no room for what %d calls lend", calls)
		}
		if err == nil && len(launches[i]) == 0 && !s.failed() {
			err = fmt.Errorf("call %d starts no kernel", i)
		}
		if err != nil {
			s.Close()
			return nil, nil, err
		}
	}
	s.trace = nil
	if err := waitStream(m.d.context, s.cu); err != nil {
		s.late(err)
	}
	if err := s.take(); err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, launches, nil
}

// trial records calls, measures them, and forgets the stream.
func (m *measuring) trial(t trial, calls int, keep func(operation) bool, op func(s *stream, i int)) error {
	s, launches, err := m.record(calls, keep, op)
	if err != nil {
		return err
	}
	defer s.Close()
	t.launches = launches
	return m.run(t, s)
}
