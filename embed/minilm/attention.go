package minilm

import (
	"math"
	"slices"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

// head is the memory of one head of attention over one text of n tokens.
type head struct {
	q, k   []float32 // [n][size]
	v      []float32 // [size][n]
	scores []float32 // [n][n]
	out    []float32 // [n][size]
}

// attend lets each token of a text look at all tokens of that text: softmax(q·kᵀ/√size)·v for each head, from s.q, s.k and
// s.v into s.mixed.
func (m *Model) attend(s *scratch, spans []span, threads int) {
	heads := m.config.Heads
	s.heads = slices.Grow(s.heads[:0], threads)[:threads]
	each(threads, threads, func(worker, _ int) { // worker takes every threads-th head
		for i := worker; i < len(spans)*heads; i += threads {
			m.attendHead(s, &s.heads[worker], spans[i/heads], i%heads)
		}
	})
}

func (m *Model) attendHead(s *scratch, h *head, at span, number int) {
	n, size := at.to-at.from, m.config.Hidden/m.config.Heads
	h.gather(s, at, m.config.Hidden, number*size, size)
	matmul(h.scores, h.q, h.k, n, n, size)
	scale := 1 / math.Sqrt(float64(size))
	for row := range n {
		softmax(h.scores[row*n:][:n], scale)
	}
	matmul(h.out, h.scores, h.v, n, size, n)
	for row := range n {
		copy(s.mixed[(at.from+row)*m.config.Hidden+number*size:], h.out[row*size:][:size])
	}
}

// gather copies one head's queries, keys and values, the latter transposed, which begin at offset in each row.
func (h *head) gather(s *scratch, at span, hidden, offset, size int) {
	n := at.to - at.from
	h.q, h.k, h.v = compute.Grow(h.q, n*size), compute.Grow(h.k, n*size), compute.Grow(h.v, n*size)
	h.scores, h.out = compute.Grow(h.scores, n*n), compute.Grow(h.out, n*size)
	for row := range n {
		from := (at.from+row)*hidden + offset
		copy(h.q[row*size:][:size], s.q[from:])
		copy(h.k[row*size:][:size], s.k[from:])
		for i, v := range s.v[from:][:size] {
			h.v[i*n+row] = v
		}
	}
}

// softmax turns scores into shares of 1: exp(scale·x) over their sum.
func softmax(x []float32, scale float64) {
	top := float64(slices.Max(x))
	var sum float64
	for i, v := range x {
		e := math.Exp((float64(v) - top) * scale)
		x[i] = float32(e)
		sum += e
	}
	for i := range x {
		x[i] = float32(float64(x[i]) / sum)
	}
}
