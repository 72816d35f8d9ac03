//go:build cuda

package cuda

import (
	"bytes"
	"crypto/sha256"
	"math"
	"math/rand/v2"
	"unsafe"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// compared computes the same on a device and on the CPU. Results may differ by a part of the largest; within 0 they are the same bits.
func compared(d gpu.Device, same func(gpu.Device) ([]byte, error), within float64) (right bool, sum string, err error) {
	got, err := same(d)
	if err != nil {
		return false, "", err
	}
	want, err := same(gpu.CPU{})
	if err != nil {
		return false, "", err
	}
	right = len(got) == len(want) && len(got) > 0
	if within == 0 {
		right = right && bytes.Equal(got, want)
	} else if right {
		right = near(floats(got), floats(want), within)
	}
	return right, digits(sha256.Sum256(got)), nil
}

func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func near(got, want []float32, within float64) bool {
	most := 0.0
	for _, x := range want {
		most = max(most, math.Abs(float64(x)))
	}
	for i := range got {
		if !(math.Abs(float64(got[i])-float64(want[i])) <= within*most) {
			return false
		}
	}
	return most > 0
}

// small is something that each device can compute soon. Its first error is kept.
type small struct {
	d       gpu.Device
	s       gpu.Stream
	random  *rand.Rand
	err     error
	buffers []gpu.Buffer
}

// smallHeads have the dimensions of the large ones.
var smallHeads = compute.Heads{Query: 8, KV: 2, Dim: 128}

const smallLayers = 2

// on runs f with the same random numbers on each device.
func on(d gpu.Device, f func(x *small) []byte) ([]byte, error) {
	x := &small{d: d, random: rand.New(rand.NewPCG(3, 4))}
	if x.s, x.err = d.NewStream(1); x.err != nil {
		return nil, x.err
	}
	defer x.s.Close()
	defer func() {
		for _, b := range x.buffers {
			d.Free(b)
		}
	}()
	result := f(x)
	x.sync()
	return result, x.err
}

func (x *small) note(err error) {
	if x.err == nil {
		x.err = err
	}
}

func (x *small) sync() { x.note(x.s.Sync()) }

func (x *small) normal(n int) []float32 {
	floats := make([]float32, n)
	for i := range floats {
		floats[i] = float32(x.random.NormFloat64())
	}
	return floats
}

func (x *small) buffer(floats []float32) gpu.Buffer {
	b, err := x.d.Alloc("small", len(floats))
	if x.note(err); err != nil {
		return gpu.Buffer{}
	}
	x.buffers = append(x.buffers, b)
	x.s.Write(b, floats)
	return b
}

// numbers is a buffer of random numbers.
func (x *small) numbers(n int) gpu.Buffer { return x.buffer(x.normal(n)) }

// read returns the bits of a buffer.
func (x *small) read(b gpu.Buffer) []byte {
	floats := make([]float32, b.N)
	x.s.Read(floats, b)
	x.sync()
	return view(floats)
}

// pages are new ones with random numbers.
func (x *small) pages(p gpu.Pool, n int) []gpu.Page {
	pages := make([]gpu.Page, n)
	for i := range pages {
		var err error
		pages[i], err = p.New()
		if x.note(err); err == nil {
			x.note(p.Write(pages[i], x.normal(p.Floats())))
		}
	}
	return pages
}

// readPages returns the bits of pages.
func (x *small) readPages(p gpu.Pool, pages []gpu.Page) (all []byte) {
	x.sync()
	floats := make([]float32, p.Floats())
	for _, page := range pages {
		x.note(p.Read(floats, page))
		all = append(all, view(floats)...)
	}
	return all
}

// onPages runs f with pages to and from, and returns what to has then.
func onPages(d gpu.Device, to, from int, f func(x *small, p gpu.Pool, to, from []gpu.Page)) ([]byte, error) {
	return on(d, func(x *small) []byte {
		p := d.NewPool(smallHeads, smallLayers)
		a, b := x.pages(p, to), x.pages(p, from)
		if x.err != nil {
			return nil
		}
		f(x, p, a, b)
		result := x.readPages(p, a)
		if own, ok := p.(*pool); ok {
			own.close()
		}
		return result
	})
}

func smallRope() *compute.Rope { return compute.NewRope(smallHeads.Dim, 5e5, nil, true) }

func sameGather(d gpu.Device) ([]byte, error) {
	return onPages(d, 2, 4, func(x *small, p gpu.Pool, to, from []gpu.Page) {
		chosen := make([][][]int, smallLayers)
		for layer := range chosen {
			for range smallHeads.KV {
				var list []int
				for i := range 4 * compute.PageTokens {
					if x.random.IntN(2) == 0 && len(list) < 2*compute.PageTokens {
						list = append(list, i)
					}
				}
				chosen[layer] = append(chosen[layer], list)
			}
		}
		x.s.Gather(p, to, from, chosen)
	})
}

func sameMove(d gpu.Device) ([]byte, error) {
	return onPages(d, 3, 3, func(x *small, p gpu.Pool, to, from []gpu.Page) {
		x.s.Move(p, to, 5, from, 0, 2*compute.PageTokens+3, smallRope().Angles(nil, 1000), smallRope())
	})
}

func sameTurn(d gpu.Device) ([]byte, error) {
	return onPages(d, 1, 0, func(x *small, p gpu.Pool, to, _ []gpu.Page) {
		steps := make([]int32, smallLayers*smallHeads.KV*compute.PageTokens)
		for i := range steps {
			steps[i] = int32(i % 7)
		}
		x.s.Turn(p, to[0], steps, smallRope())
	})
}

func samePages(d gpu.Device) ([]byte, error) {
	return onPages(d, 2, 2, func(x *small, p gpu.Pool, to, from []gpu.Page) {
		for i := range to {
			x.note(p.Copy(to[i], from[i]))
		}
	})
}

func sameStore(d gpu.Device) ([]byte, error) {
	return onPages(d, 3, 0, func(x *small, p gpu.Pool, to, _ []gpu.Page) {
		const rows = 35
		batch := x.s.Batch(0, p, []gpu.Run{{Rows: rows, Position: 3, Pages: to}})
		width := smallHeads.KV * smallHeads.Dim
		for layer := range smallLayers {
			x.s.Store(batch, layer, x.numbers(rows*width), x.numbers(rows*width))
		}
	})
}

func sameNorms(d gpu.Device) ([]byte, error) {
	var norms []float64
	_, err := onPages(d, 3, 0, func(x *small, p gpu.Pool, to, _ []gpu.Page) {
		n := 3*compute.PageTokens - 2
		norms = make([]float64, n*smallHeads.KV)
		x.s.ValueNorms(norms, p, 1, to, n)
	})
	return view(norms), err
}

// attended is the output of attention with a probe, or what the probe sees.
func attended(d gpu.Device, probe *compute.Probe) ([]byte, error) {
	var out []byte
	_, err := onPages(d, 9, 0, func(x *small, p gpu.Pool, to, _ []gpu.Page) {
		const rows = 6
		run := gpu.Run{Rows: rows, Position: 9*compute.PageTokens - rows, Pages: to}
		if probe != nil {
			run.Probes = []*compute.Probe{nil, probe}
		}
		q := x.numbers(rows * smallHeads.Query * smallHeads.Dim)
		result := x.buffer(make([]float32, q.N))
		if x.err != nil {
			return
		}
		x.s.Attend(x.s.Batch(0, p, []gpu.Run{run}), 1, result, q)
		out = x.read(result)
	})
	if probe != nil {
		out = view(probe.Sums)
	}
	return out, err
}

func sameAttend(d gpu.Device) ([]byte, error) { return attended(d, nil) }

func sameProbe(d gpu.Device) ([]byte, error) { return attended(d, compute.NewProbe(smallHeads, 100)) }

func sameWithin(d gpu.Device) ([]byte, error) {
	p := compute.NewProbe(smallHeads, 100)
	p.Within = true
	return attended(d, p)
}

// packed are bytes of weights in any format that are finite.
func packed(random *rand.Rand, n int) []byte {
	data := make([]byte, n)
	for i := range min(n, 1<<20) {
		data[i] = byte(random.IntN(0x3c))
	}
	for at := 1 << 20; at < n; at += 1 << 20 {
		copy(data[at:], data[:1<<20])
	}
	return data
}

func sameProduct(t quant.Type, rows int) func(gpu.Device) ([]byte, error) {
	return func(d gpu.Device) ([]byte, error) {
		const outs, cols = 70, 512
		return on(d, func(x *small) []byte {
			size, err := t.Bytes(outs * cols)
			x.note(err)
			w, err := d.Matrix("small", t, outs, cols, packed(x.random, size))
			x.note(err)
			a, out := x.numbers(rows*cols), x.buffer(make([]float32, rows*outs))
			if x.err != nil {
				return nil
			}
			x.s.MatMul(out, a, rows, &w)
			result := x.read(out)
			if own, ok := d.(*device); ok {
				own.release(w.Addr)
			}
			return result
		})
	}
}

// sameRows runs f on two buffers of rows, and returns the first.
func sameRows(d gpu.Device, f func(x *small, a, b gpu.Buffer)) ([]byte, error) {
	return on(d, func(x *small) []byte {
		a, b := x.numbers(smallRows*smallWidth), x.numbers(smallRows*smallWidth)
		if x.err != nil {
			return nil
		}
		f(x, a, b)
		return x.read(a)
	})
}

const smallRows, smallWidth = 5, 512

func sameNorm(d gpu.Device) ([]byte, error) {
	return sameRows(d, func(x *small, a, b gpu.Buffer) { x.s.Norm(a, a, b.First(smallWidth), 1e-5) })
}

func sameAdd(d gpu.Device) ([]byte, error) {
	return sameRows(d, func(x *small, a, b gpu.Buffer) { x.s.Add(a, b) })
}

func sameGate(d gpu.Device) ([]byte, error) {
	return sameRows(d, func(x *small, a, b gpu.Buffer) { x.s.Gate(a, b) })
}

func sameRotate(d gpu.Device) ([]byte, error) {
	return sameRows(d, func(x *small, a, b gpu.Buffer) { x.s.Rotate(a, b.First(smallRows*smallHeads.Dim), smallRope()) })
}

func sameLargest(d gpu.Device) ([]byte, error) {
	return on(d, func(x *small) []byte {
		all, err := x.s.Largest(x.normal(3*2000), 2000, 300)
		x.note(err)
		var places []int64
		for _, row := range all {
			for _, i := range row {
				places = append(places, int64(i))
			}
		}
		return view(places)
	})
}

func sameArgmax(d gpu.Device) ([]byte, error) {
	return on(d, func(x *small) []byte {
		b := x.numbers(7 * 600)
		places := make([]int32, 7)
		if x.err == nil {
			x.s.Argmax(places, b, 600)
		}
		x.sync()
		return view(places)
	})
}
