package gputest

import (
	"fmt"
	"math"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// model is a small one with random weights.
type model struct {
	d                        gpu.Device
	heads                    compute.Heads
	layers, hidden, ffn, all int
	rope                     *compute.Rope
	w                        map[string]*gpu.Matrix
	norm                     gpu.Buffer
	pool                     gpu.Pool
}

// model returns the same one on every device.
func (s *suite) model(d gpu.Device, stream gpu.Stream) *model {
	s.Helper()
	m := &model{
		d: d, heads: compute.Heads{Query: 4, KV: 2, Dim: 16}, layers: 2, hidden: 64, ffn: 96, all: 50,
		rope: compute.NewRope(16, 1e4, nil, true), w: map[string]*gpu.Matrix{},
	}
	matrix := func(name string, t quant.Type, rows, cols int) {
		on := &suite{T: s.T, d: d}
		m.w[name] = on.matrix(t, rows, cols, uint64(len(m.w)))
	}
	matrix("embedding", quant.Q8_0, m.all, m.hidden)
	for i := range m.layers {
		matrix(fmt.Sprint("q", i), quant.Q4_1, 64, m.hidden)
		matrix(fmt.Sprint("k", i), quant.Q5_0, 32, m.hidden)
		matrix(fmt.Sprint("v", i), quant.F16, 32, m.hidden)
		matrix(fmt.Sprint("o", i), quant.BF16, m.hidden, 64)
		matrix(fmt.Sprint("gate", i), quant.IQ4_NL, m.ffn, m.hidden)
		matrix(fmt.Sprint("up", i), quant.Q4_0, m.ffn, m.hidden)
		matrix(fmt.Sprint("down", i), quant.Q5_1, m.hidden, m.ffn)
	}
	weights := make([]float32, m.hidden)
	for i := range weights {
		weights[i] = 1 + .1*float32(math.Sin(float64(i)))
	}
	m.norm = (&suite{T: s.T, d: d, s: stream}).up(weights)
	m.pool = d.NewPool(m.heads, m.layers)
	return m
}

// forward computes tokens of one sequence and returns the logits of all.
func (s *suite) forward(m *model, stream gpu.Stream, pages []gpu.Page, position int, tokens []int32) []float32 {
	s.Helper()
	on, n := &suite{T: s.T, d: m.d, s: stream}, len(tokens)
	x, h, sum := on.alloc(n*m.hidden), on.alloc(n*m.hidden), on.alloc(n*m.hidden)
	q, out, k, v := on.alloc(n*64), on.alloc(n*64), on.alloc(n*32), on.alloc(n*32)
	gate, up, logits := on.alloc(n*m.ffn), on.alloc(n*m.ffn), on.alloc(n*m.all)
	var angles []float32
	for i := range tokens {
		angles = m.rope.Angles(angles, position+i)
	}
	turns := on.up(angles)
	stream.Rows(x, m.w["embedding"], tokens)
	batch := stream.Batch(0, m.pool, []gpu.Run{{Rows: n, Position: position, Pages: pages}})
	for i := range m.layers {
		w := func(name string) *gpu.Matrix { return m.w[fmt.Sprint(name, i)] }
		stream.Norm(h, x, m.norm, 1e-5)
		stream.MatMul(k, h, n, w("k"))
		stream.MatMul(v, h, n, w("v"))
		stream.MatMul(q, h, n, w("q"))
		stream.Rotate(k, turns, m.rope)
		stream.Rotate(q, turns, m.rope)
		stream.Store(batch, i, k, v)
		stream.Attend(batch, i, out, q)
		stream.MatMul(sum, out, n, w("o"))
		stream.Add(x, sum)
		stream.Norm(h, x, m.norm, 1e-5)
		stream.MatMul(gate, h, n, w("gate"))
		stream.MatMul(up, h, n, w("up"))
		stream.Gate(gate, up)
		stream.MatMul(sum, gate, n, w("down"))
		stream.Add(x, sum)
	}
	stream.Norm(x, x, m.norm, 1e-5)
	stream.MatMul(logits, x, n, m.w["embedding"])
	return on.down(logits)
}

// forwardPass: near to the CPU's, and the same bits whether a sequence is computed at once, in pieces, or behind pages that were kept by
// the host.
func (s *suite) forwardPass() {
	const n = 45
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(s.random.IntN(50))
	}
	m := s.model(s.d, s.s)
	once := s.forward(m, s.s, s.take(m.pool, 3), 0, tokens)
	pages := s.take(m.pool, 3)
	for at, step := 0, 1; at < n; at, step = at+step, step+6 {
		step = min(step, n-at)
		got := s.forward(m, s.s, pages, at, tokens[at:at+step])
		s.same(fmt.Sprintf("%d tokens at %d", step, at), got, once[at*m.all:(at+step)*m.all])
	}
	again := s.take(m.pool, 3)
	for i := range 2 {
		floats, err := m.pool.Take(&pages[i])
		if err != nil {
			s.Fatal(err)
		}
		if err := m.pool.Write(again[i], floats); err != nil {
			s.Fatal(err)
		}
	}
	s.same("behind pages that the host has kept", s.forward(m, s.s, again, 32, tokens[32:]), once[32*m.all:])
	cpu := gpu.CPU{}
	stream, _ := cpu.NewStream(1)
	c := s.model(cpu, stream)
	reference := s.forward(c, stream, s.take(c.pool, 3), 0, tokens)
	want, scale := make([]float64, len(reference)), make([]float64, len(reference))
	for i, x := range reference {
		want[i], scale[i] = float64(x), 10
	}
	s.near("logits of the CPU", once, want, scale, 1e-5)
}
