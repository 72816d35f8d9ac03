package gputest

import (
	"fmt"
	"math"
	"slices"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// shapes of heads, with few and many queries that share one.
var shapes = []compute.Heads{
	{Query: 4, KV: 2, Dim: 64},
	{Query: 3, KV: 1, Dim: 40},
	{Query: 40, KV: 2, Dim: 16},
	{Query: 2, KV: 2, Dim: 128},
	{Query: 1, KV: 1, Dim: 256},
}

// exact is attention in float64: the results, and the weights of each query of each row, query after query.
func exact(c *cache, layer int, q []float32, row, position int) (out []float64, weights [][]float64) {
	h := c.heads
	for query := range h.Query {
		head := query / (h.Query / h.KV)
		x := q[(row*h.Query+query)*h.Dim:][:h.Dim]
		w := make([]float64, position+1)
		for t := range w {
			w[t] = dot(x, c.key(layer, head, t)) / math.Sqrt(float64(h.Dim))
		}
		most, sum := slices.Max(w), 0.0
		for t := range w {
			w[t] = math.Exp(w[t] - most)
			sum += w[t]
		}
		result := make([]float64, h.Dim)
		for t := range w {
			w[t] /= sum
			for d, v := range c.value(layer, head, t) {
				result[d] += w[t] * float64(v)
			}
		}
		out, weights = append(out, result...), append(weights, w)
	}
	return out, weights
}

// store: rows' keys and values come to their places, and nothing else changes.
func (s *suite) store() {
	for _, h := range shapes[:3] {
		pool := s.d.NewPool(h, 2)
		a, b := s.fill(pool, h, 2, 3), s.fill(pool, h, 2, 1)
		runs := []gpu.Run{{Rows: 20, Position: 13, Pages: a.pages}, {}, {Rows: 1, Position: 15, Pages: b.pages}}
		width := h.KV * h.Dim
		keys, values := s.normal(21*width), s.normal(21*width)
		batch := s.s.Batch(0, pool, runs)
		s.s.Store(batch, 1, s.up(keys), s.up(values))
		for row := range 21 {
			c, at := a, 13+row
			if row == 20 {
				c, at = b, 15
			}
			c.layer(1, at).Put(h, at%compute.PageTokens, keys[row*width:][:width], values[row*width:][:width])
		}
		s.sync()
		s.check("store", a)
		s.check("store", b)
	}
}

// attention of several runs, near to sums in float64.
func (s *suite) attention() {
	for _, h := range shapes {
		pool := s.d.NewPool(h, 2)
		a, b := s.fill(pool, h, 2, 3), s.fill(pool, h, 2, 20)
		runs := []gpu.Run{
			{Rows: 1, Position: 299, Pages: b.pages},
			{Rows: 19, Position: 0, Pages: a.pages},
			{Rows: 0},
			{Rows: 2, Position: 40, Pages: a.pages},
			{Rows: 3, Position: 254, Pages: b.pages},
		}
		rows, width := 25, h.Query*h.Dim
		q := s.normal(rows * width)
		for i := range q {
			q[i] *= 2
		}
		in, out := s.up(q), s.alloc(rows*width)
		batch := s.s.Batch(1, pool, runs)
		for layer := range 2 {
			s.s.Attend(batch, layer, out, in)
			got := s.down(out)
			row := 0
			for i, r := range runs {
				c := a
				if i == 0 || i == 4 {
					c = b
				}
				for n := range r.Rows {
					want, _ := exact(c, layer, q, row, r.Position+n)
					scale := make([]float64, len(want))
					for j := range scale {
						scale[j] = max(.5, math.Abs(want[j]))
					}
					s.near(fmt.Sprintf("%+v, layer %d, run %d, row %d", h, layer, i, n), got[row*width:][:width], want, scale, 1e-5)
					row++
				}
			}
		}
	}
}

// attentionAlone: a row's result is the same bits whatever rows there are beside it.
func (s *suite) attentionAlone() {
	h := compute.Heads{Query: 6, KV: 2, Dim: 32}
	pool := s.d.NewPool(h, 1)
	c := s.fill(pool, h, 1, 20)
	width, rows := h.Query*h.Dim, 37
	q := s.normal(rows * width)
	in, out := s.up(q), s.alloc(rows*width)
	s.s.Attend(s.s.Batch(0, pool, []gpu.Run{{Rows: rows, Position: 240, Pages: c.pages}}), 0, out, in)
	all := s.down(out)
	for at, n := 0, 1; at < rows; at, n = at+n, n%5+1 {
		n = min(n, rows-at)
		part := s.alloc(n * width)
		batch := s.s.Batch(0, pool, []gpu.Run{{Rows: n, Position: 240 + at, Pages: c.pages}})
		s.s.Attend(batch, 0, part, in.Slice(at*width, (at+n)*width))
		s.same(fmt.Sprintf("%d rows at %d", n, at), s.down(part), all[at*width:(at+n)*width])
	}
}

// probes in all forms, near to sums in float64. Some runs have none, and two share one.
func (s *suite) probes() {
	h := compute.Heads{Query: 6, KV: 2, Dim: 24}
	const layers, tokens = 2, 37
	pool := s.d.NewPool(h, layers)
	a, b := s.fill(pool, h, layers, 4), s.fill(pool, h, layers, 3)
	rows, width := 18+5+2, h.Query*h.Dim
	q := s.normal(rows * width)
	in, out := s.up(q), s.alloc(rows*width)
	for _, weight := range []compute.RowWeight{compute.Equal, compute.Position, compute.ValueNorm} {
		for form := range 4 {
			within, most := form&1 != 0, form&2 != 0
			probe := compute.NewProbe(h, tokens)
			probe.Rows, probe.Within, probe.Most = weight, within, most
			runs := []gpu.Run{
				{Rows: 18, Position: 30, Pages: a.pages, Probes: []*compute.Probe{probe, probe}},
				{Rows: 5, Position: 3, Pages: a.pages},
				{Rows: 2, Position: 20, Pages: b.pages, Probes: []*compute.Probe{nil, probe}},
			}
			want, scale := make([]float64, h.KV*tokens), make([]float64, h.KV*tokens)
			for range 2 { // two calls between waits
				batch := s.s.Batch(0, pool, runs)
				for layer := range layers {
					s.s.Attend(batch, layer, out, in)
					expect(want, a, probe, layer, q, 0, 18, 30)
					if layer == 1 {
						expect(want, b, probe, layer, q, 23, 2, 20)
					}
				}
			}
			s.sync()
			for i, x := range want {
				scale[i] = max(1e-3, x)
			}
			what := fmt.Sprintf("probe %d within %t most %t", weight, within, most)
			s.near(what, probe.Sums, want, scale, 1e-5)
			before := slices.Clone(probe.Sums)
			s.s.Attend(s.s.Batch(0, pool, runs[:1]), 0, out.First(18*width), in.First(18*width))
			s.sync()
			expect(want, a, probe, 0, q, 0, 18, 30)
			s.near(what+", after a wait", probe.Sums, want, scale, 1e-5)
			if most {
				s.same(what+", once more", probe.Sums, before)
			}
		}
	}
}

// expect adds to sums what a probe sees of rows.
func expect(sums []float64, c *cache, p *compute.Probe, layer int, q []float32, first, rows, position int) {
	h := c.heads
	for i := range rows {
		_, weights := exact(c, layer, q, first+i, position+i)
		for query, w := range weights {
			head, factor := query/(h.Query/h.KV), 1.0
			switch p.Rows {
			case compute.Position:
				factor = float64(position + i + 1)
			case compute.ValueNorm:
				v := c.value(layer, head, position+i)
				factor = math.Sqrt(dot(v, v))
			}
			w = w[:min(len(w), p.Tokens)]
			if p.Within {
				sum := 0.0
				for _, x := range w {
					sum += x
				}
				factor /= sum
			}
			for t, x := range w {
				if to := &sums[head*p.Tokens+t]; p.Most {
					*to = max(*to, x*factor)
				} else {
					*to += x * factor
				}
			}
		}
	}
}

// sums are a probe's of the first tokens that rows of a sequence attend to.
func (s *suite) sums(c *cache, tokens, rows int, q []float32) []float32 {
	probe := compute.NewProbe(c.heads, tokens)
	batch := s.s.Batch(0, c.pool, []gpu.Run{{Rows: rows, Position: tokens, Pages: c.pages, Probes: []*compute.Probe{probe}}})
	s.s.Attend(batch, 0, s.alloc(len(q)), s.up(q))
	s.sync()
	return probe.Sums
}

// needle: the token whose key is like the queries is among those that are attended to most.
func (s *suite) needle() {
	h := compute.Heads{Query: 4, KV: 2, Dim: 32}
	pool := s.d.NewPool(h, 1)
	c := s.fill(pool, h, 1, 13)
	const tokens, rows, at = 200, 3, 123
	q := s.normal(rows * h.Query * h.Dim)
	for head := range h.KV {
		for d := range h.Dim {
			sum := float32(0)
			for row := range rows {
				for query := head * 2; query < head*2+2; query++ {
					sum += q[(row*h.Query+query)*h.Dim+d]
				}
			}
			c.layer(0, at).Keys[(head*h.Dim+d)*compute.PageTokens+at%compute.PageTokens] = sum
		}
	}
	if err := pool.Write(c.pages[at/compute.PageTokens], c.floats[at/compute.PageTokens]); err != nil {
		s.Fatal(err)
	}
	chosen, err := s.s.Largest(s.sums(c, tokens, rows, q), tokens, 1)
	if err != nil {
		s.Fatal(err)
	}
	for head, places := range chosen {
		if places[0] != at {
			s.Errorf("head %d attends most to token %d, want %d", head, places[0], at)
		}
	}
}

// permutation: tokens in another order are attended to as before.
func (s *suite) permutation() {
	h := compute.Heads{Query: 2, KV: 1, Dim: 16}
	pool := s.d.NewPool(h, 1)
	const tokens, rows = 64, 4
	a := s.fill(pool, h, 1, 5)
	b := s.fill(pool, h, 1, 5)
	order := append(s.random.Perm(tokens), 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79)
	s.s.Gather(pool, b.pages, a.pages, [][][]int{{order}})
	s.sync()
	q := s.normal(rows * h.Query * h.Dim)
	before, after := s.sums(a, tokens, rows, q), s.sums(b, tokens, rows, q)
	want := make([]float64, tokens)
	for slot, token := range order[:tokens] {
		want[slot] = float64(before[token])
	}
	s.near("permuted tokens", after, want, nil, 1e-5)
}
