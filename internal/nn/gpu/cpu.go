package gpu

import (
	"slices"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// CPU is the device in Go: every program has it. Its operations have ended when they return, and its buffers are slices. The zero CPU is
// ready, and all are the same.
type CPU struct{}

var _ Device = CPU{}

// Name is "cpu".
func (CPU) Name() string { return "cpu" }

// Kernel is [compute.Kernel].
func (CPU) Kernel() string { return compute.Kernel() }

// Memory is not known.
func (CPU) Memory() Memory { return Memory{} }

// Alloc implements [Device].
func (CPU) Alloc(what string, n int) (Buffer, error) {
	return Buffer{Host: make([]float32, n), N: n, What: what}, nil
}

// Free implements [Device].
func (CPU) Free(Buffer) {}

// Matrix implements [Device]. The error does not name the tensor.
func (CPU) Matrix(what string, t quant.Type, rows, cols int, data []byte) (Matrix, error) {
	m, err := compute.NewMatrix(t, rows, cols, data)
	return Matrix{Matrix: m, What: what}, err
}

// NewPool implements [Device].
func (CPU) NewPool(heads compute.Heads, layers int) Pool { return hostPool{heads, layers} }

// NewStream implements [Device].
func (CPU) NewStream(threads int) (Stream, error) {
	return &hostStream{crew: compute.NewCrew(threads)}, nil
}

// Close implements [Device].
func (CPU) Close() error { return nil }

// HostPage is a page in the program's own memory.
func HostPage(floats []float32) Page { return Page{Host: floats} }

// hostPool allocates each page by itself.
type hostPool struct {
	heads  compute.Heads
	layers int
}

func (p hostPool) Floats() int { return LayerFloats(p.heads) * p.layers }

func (p hostPool) New() (Page, error) { return HostPage(make([]float32, p.Floats())), nil }

func (hostPool) Free(Page) {}

func (hostPool) Copy(to, from Page) error {
	copy(to.Host, from.Host)
	return nil
}

func (hostPool) Write(to Page, floats []float32) error {
	copy(to.Host, floats)
	return nil
}

func (hostPool) Read(floats []float32, from Page) error {
	copy(floats, from.Host)
	return nil
}

func (p hostPool) Take(page *Page) ([]float32, error) {
	taken := page.Host
	page.Host = make([]float32, p.Floats())
	return taken, nil
}

// LayerFloats is how many of a page's floats belong to a layer: first keys, then as many values.
func LayerFloats(h compute.Heads) int { return 2 * h.KV * h.Dim * compute.PageTokens }

// Layer is the part of a page's floats that belongs to a layer.
func Layer(h compute.Heads, floats []float32, layer int) compute.Page {
	size := LayerFloats(h) / 2
	floats = floats[2*layer*size:]
	return compute.Page{Keys: floats[:size:size], Values: floats[size:][:size:size]}
}

// hostStream computes at once.
type hostStream struct {
	crew    *compute.Crew
	batches [2]hostBatch
}

// hostBatch is memory that batches of one kind use again.
type hostBatch struct {
	heads compute.Heads
	runs  []compute.Run
	lists [][]compute.Page // of runs
}

func (*hostStream) Write(to Buffer, floats []float32)  { copy(to.Host, floats) }
func (*hostStream) Read(floats []float32, from Buffer) { copy(floats, from.Host) }

func (*hostStream) Rows(out Buffer, w *Matrix, numbers []int32) {
	for i, n := range numbers {
		w.Row(out.Host[i*w.Cols:][:w.Cols], int(n))
	}
}

func (s *hostStream) MatMul(out, a Buffer, rows int, w *Matrix) {
	s.crew.MatMul(out.Host, a.Host, rows, &w.Matrix)
}

func (s *hostStream) Norm(out, x, weights Buffer, epsilon float32) {
	s.crew.Norm(out.Host, x.Host, weights.Host, epsilon)
}

func (*hostStream) Add(x, y Buffer)          { compute.Add(x.Host, y.Host) }
func (*hostStream) AddRow(x, bias Buffer)    { compute.AddRow(x.Host, bias.Host) }
func (s *hostStream) Gate(g, u Buffer)       { s.crew.Gate(g.Host, u.Host) }
func (*hostStream) Sync() error              { return nil }
func (*hostStream) Close()                   {}
func (s *hostStream) own(b Batch) *hostBatch { return b.Own.(*hostBatch) }

func (s *hostStream) Rotate(x, angles Buffer, rope *compute.Rope) {
	dim := rope.Dim()
	rows := angles.N / dim
	width := x.N / rows
	s.crew.Each(rows, 4*x.N, func(from, to int) {
		for i := from; i < to; i++ {
			rope.Rotate(x.Host[i*width:][:width], angles.Host[i*dim:][:dim])
		}
	})
}

func (*hostStream) Keep(x Buffer, width int, numbers []int32) {
	for i, from := range numbers {
		copy(x.Host[i*width:][:width], x.Host[int(from)*width:][:width])
	}
}

func (s *hostStream) Batch(kind int, pool Pool, runs []Run) Batch {
	b := &s.batches[kind]
	b.heads = pool.(hostPool).heads
	return Batch{Runs: runs, Own: b}
}

func (s *hostStream) Store(b Batch, layer int, keys, values Buffer) {
	h, row := s.own(b).heads, 0
	width := h.KV * h.Dim
	for _, r := range b.Runs {
		for at := r.Position; at < r.Position+r.Rows; at++ {
			page := Layer(h, r.Pages[at/compute.PageTokens].Host, layer)
			page.Put(h, at%compute.PageTokens, keys.Host[row*width:][:width], values.Host[row*width:][:width])
			row++
		}
	}
}

func (s *hostStream) Attend(b Batch, layer int, out, q Buffer) {
	own := s.own(b)
	s.crew.Attend(out.Host, q.Host, own.heads, own.layer(b.Runs, layer))
}

// layer returns what the runs look at in a layer. Runs with the same pages share the list.
func (b *hostBatch) layer(runs []Run, layer int) []compute.Run {
	b.runs = b.runs[:0]
	lists := 0
	for i, r := range runs {
		x := compute.Run{Rows: r.Rows, Position: r.Position}
		if r.Probes != nil {
			x.Probe = r.Probes[layer]
		}
		if i > 0 && len(r.Pages) > 0 && len(r.Pages) == len(runs[i-1].Pages) && &r.Pages[0] == &runs[i-1].Pages[0] {
			x.Pages = b.runs[i-1].Pages
		} else {
			if lists == len(b.lists) {
				b.lists = append(b.lists, nil)
			}
			list := b.lists[lists][:0]
			for _, p := range r.Pages {
				list = append(list, Layer(b.heads, p.Host, layer))
			}
			b.lists[lists], x.Pages = list, list
			lists++
		}
		b.runs = append(b.runs, x)
	}
	return b.runs
}

func (*hostStream) Move(pool Pool, to []Page, at int, from []Page, fromAt, n int, by []float32, rope *compute.Rope) {
	p := pool.(hostPool)
	for i := range n {
		t, f := to[(at+i)/compute.PageTokens].Host, from[(fromAt+i)/compute.PageTokens].Host
		for layer := range p.layers {
			l := Layer(p.heads, t, layer)
			for head := range p.heads.KV {
				l.CopyHead(p.heads, head, (at+i)%compute.PageTokens, Layer(p.heads, f, layer), (fromAt+i)%compute.PageTokens, rope, by)
			}
		}
	}
}

func (*hostStream) Gather(pool Pool, to, from []Page, chosen [][][]int) {
	p := pool.(hostPool)
	for layer := range p.layers {
		for head := range p.heads.KV {
			for slot, i := range chosen[layer][head] {
				source := Layer(p.heads, from[i/compute.PageTokens].Host, layer)
				Layer(p.heads, to[slot/compute.PageTokens].Host, layer).CopyHead(p.heads, head, slot%compute.PageTokens, source,
					i%compute.PageTokens, nil, nil)
			}
		}
	}
}

func (*hostStream) Turn(pool Pool, page Page, steps []int32, rope *compute.Rope) {
	p, angles := pool.(hostPool), map[int32][]float32{}
	for i, by := range steps {
		if by == 0 {
			continue
		}
		if angles[by] == nil {
			angles[by] = rope.Angles(nil, int(by))
		}
		slot, head := i%compute.PageTokens, i/compute.PageTokens%p.heads.KV
		l := Layer(p.heads, page.Host, i/compute.PageTokens/p.heads.KV)
		l.CopyHead(p.heads, head, slot, l, slot, rope, angles[by])
	}
}

func (*hostStream) ValueNorms(norms []float64, pool Pool, layer int, pages []Page, n int) {
	p := pool.(hostPool)
	for head := range p.heads.KV {
		for i := range n {
			l := Layer(p.heads, pages[i/compute.PageTokens].Host, layer)
			norms[head*n+i] = l.ValueNorm(p.heads, head, i%compute.PageTokens)
		}
	}
}

func (*hostStream) Largest(values []float32, width, k int) ([][]int, error) {
	var all [][]int
	for row := range slices.Chunk(values, width) {
		all = append(all, compute.Largest(row, k))
	}
	return all, nil
}

func (*hostStream) Argmax(places []int32, x Buffer, width int) {
	for i := range places {
		best, row := 0, x.Host[i*width:][:width]
		for j, v := range row {
			if v > row[best] {
				best = j
			}
		}
		places[i] = int32(best)
	}
}
