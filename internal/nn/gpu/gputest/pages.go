package gputest

import (
	"fmt"
	"math"
	"slices"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// pages go there and back, beside others that must not change.
func (s *suite) pages() {
	for _, h := range []compute.Heads{{Query: 1, KV: 1, Dim: 8}, {Query: 6, KV: 3, Dim: 20}} {
		for _, layers := range []int{1, 3, 19} {
			for _, n := range []int{1, 2, 7, 70, 400} {
				if n*layers*h.KV > 400 {
					continue // many floats
				}
				pool := s.d.NewPool(h, layers)
				if want := layers * 2 * h.KV * h.Dim * compute.PageTokens; pool.Floats() != want {
					s.Fatalf("a page has %d floats, want %d", pool.Floats(), want)
				}
				beside, c := s.fill(pool, h, layers, 2), s.fill(pool, h, layers, n)
				s.check("write", c)
				for _, i := range s.random.Perm(n)[:(n+1)/2] { // some once more, the last of several counts
					for range 2 {
						c.floats[i] = s.normal(pool.Floats())
						if err := pool.Write(c.pages[i], c.floats[i]); err != nil {
							s.Fatal(err)
						}
					}
				}
				copies := &cache{pool: pool, pages: s.take(pool, n), floats: c.floats}
				for i := range c.pages {
					if err := pool.Copy(copies.pages[i], c.pages[i]); err != nil {
						s.Fatal(err)
					}
				}
				s.check("copy", copies)
				s.check("write again", c)
				s.check("beside", beside)
				page := c.pages[0]
				taken, err := pool.Take(&page)
				if err != nil {
					s.Fatal(err)
				}
				s.same("take", taken, c.floats[0])
			}
		}
	}
}

// pageOrder: operations see pages that were written before, and copies what operations have written; a page that was freed while it was
// written is as good as another.
func (s *suite) pageOrder() {
	h := compute.Heads{Query: 2, KV: 1, Dim: 16}
	const layers = 5
	pool := s.d.NewPool(h, layers)
	width := h.KV * h.Dim
	for round := range 4 {
		page, err := pool.New()
		if err != nil {
			s.Fatal(err)
		}
		if err := pool.Write(page, s.normal(pool.Floats())); err != nil {
			s.Fatal(err)
		}
		pool.Free(page)
		c := s.fill(pool, h, layers, 1+round)
		keys, values := s.normal(width), s.normal(width)
		batch := s.s.Batch(0, pool, []gpu.Run{{Rows: 1, Position: 3, Pages: c.pages}})
		k, v := s.up(keys), s.up(values)
		for layer := range layers {
			s.s.Store(batch, layer, k, v) // behind the write
			c.layer(layer, 3).Put(h, 3, keys, values)
		}
		to := &cache{pool: pool, pages: s.take(pool, 1), floats: c.floats[:1]}
		if err := pool.Copy(to.pages[0], c.pages[0]); err != nil { // behind the store
			s.Fatal(err)
		}
		s.s.Store(batch, 0, v, k) // behind the copy
		before := slices.Clone(c.floats[0])
		c.layer(0, 3).Put(h, 3, values, keys)
		s.sync()
		s.check("store behind a write", c)
		to.floats = [][]float32{before}
		s.check("copy behind a store", to)
	}
}

// moved is what Move does, in the program's memory.
func moved(to *cache, at int, from *cache, fromAt, n int, by []float32, rope *compute.Rope) {
	for i := range n {
		for layer := range to.layers {
			for head := range to.heads.KV {
				to.layer(layer, at+i).CopyHead(to.heads, head, (at+i)%compute.PageTokens, from.layer(layer, fromAt+i),
					(fromAt+i)%compute.PageTokens, rope, by)
			}
		}
	}
}

// move: the bits of package compute; keys that move are those that are computed at the new position; and there and back.
func (s *suite) move() {
	for _, interleaved := range []bool{false, true} {
		h := compute.Heads{Query: 2, KV: 2, Dim: 24}
		rope, pool := compute.NewRope(h.Dim, 1e4, nil, interleaved), s.d.NewPool(h, 3)
		for _, m := range []struct{ at, from, n int }{{0, 0, 16}, {5, 0, 40}, {0, 9, 1}, {15, 30, 18}, {3, 4, 0}, {16, 16, 32}} {
			for _, by := range []int{0, 1, -7, 5000} {
				to, from := s.fill(pool, h, 3, 4), s.fill(pool, h, 3, 4)
				angles := rope.Angles(nil, by)
				if by == 0 {
					angles = nil
				}
				s.s.Move(pool, to.pages, m.at, from.pages, m.from, m.n, angles, rope)
				moved(to, m.at, from, m.from, m.n, angles, rope)
				s.sync()
				s.check(fmt.Sprintf("move %+v by %d", m, by), to)
				s.check("move's source", from)
			}
		}
		a, b, c := s.fill(pool, h, 3, 1), s.fill(pool, h, 3, 1), s.fill(pool, h, 3, 1)
		raw := s.normal(h.Dim)
		at := func(position int) []float32 {
			row := slices.Clone(raw)
			rope.Rotate(row, rope.Angles(nil, position))
			return row
		}
		a.layer(0, 2).Put(h, 2, append(at(2), at(2)...), s.normal(2*h.Dim))
		if err := pool.Write(a.pages[0], a.floats[0]); err != nil {
			s.Fatal(err)
		}
		s.s.Move(pool, b.pages, 9, a.pages, 2, 1, rope.Angles(nil, 1000), rope)
		s.s.Move(pool, c.pages, 2, b.pages, 9, 1, rope.Angles(nil, -1000), rope)
		s.sync()
		for _, x := range []*cache{b, c} {
			if err := pool.Read(x.floats[0], x.pages[0]); err != nil {
				s.Fatal(err)
			}
		}
		s.close("a moved key", b.key(0, 1, 9), at(1002))
		s.close("a key moved back", c.key(0, 1, 2), at(2))
	}
}

// close demands that numbers of about 1 differ by little.
func (s *suite) close(what string, got, want []float32) {
	s.Helper()
	wide, scale := make([]float64, len(want)), make([]float64, len(want))
	for i, x := range want {
		wide[i], scale[i] = float64(x), 4
	}
	s.near(what, got, wide, scale, 1e-6)
}

// gather: each head's own tokens, bit for bit.
func (s *suite) gather() {
	h := compute.Heads{Query: 2, KV: 2, Dim: 16}
	const layers = 3
	pool := s.d.NewPool(h, layers)
	for _, most := range []int{0, 1, 16, 37} {
		to, from := s.fill(pool, h, layers, 4), s.fill(pool, h, layers, 5)
		chosen := make([][][]int, layers)
		for layer := range chosen {
			for head := range h.KV {
				n := most
				if head == 1 {
					n = most / 2
				}
				list := s.random.Perm(5 * compute.PageTokens)[:n]
				slices.Sort(list)
				chosen[layer] = append(chosen[layer], list)
				for slot, i := range list {
					to.layer(layer, slot).CopyHead(h, head, slot%compute.PageTokens, from.layer(layer, i), i%compute.PageTokens, nil, nil)
				}
			}
		}
		s.s.Gather(pool, to.pages, from.pages, chosen)
		s.sync()
		s.check(fmt.Sprintf("gather %d", most), to)
		s.check("gather's source", from)
	}
}

// turn: each key by its own angles, the bits of package compute.
func (s *suite) turn() {
	for _, interleaved := range []bool{false, true} {
		h := compute.Heads{Query: 2, KV: 2, Dim: 24}
		const layers = 2
		rope, pool := compute.NewRope(h.Dim, 1e4, nil, interleaved), s.d.NewPool(h, layers)
		c, beside := s.fill(pool, h, layers, 1), s.fill(pool, h, layers, 1)
		steps := make([]int32, layers*h.KV*compute.PageTokens)
		for i := range steps {
			steps[i] = []int32{0, 0, 1, -3, 4000}[s.random.IntN(5)]
			slot, head, layer := i%compute.PageTokens, i/compute.PageTokens%h.KV, i/compute.PageTokens/h.KV
			if steps[i] != 0 {
				c.layer(layer, slot).CopyHead(h, head, slot, c.layer(layer, slot), slot, rope, rope.Angles(nil, int(steps[i])))
			}
		}
		s.s.Turn(pool, c.pages[0], steps, rope)
		s.s.Turn(pool, beside.pages[0], make([]int32, len(steps)), rope)
		s.sync()
		s.check("turn", c)
		s.check("turn by nothing", beside)
	}
}

// valueNorms: those of float64.
func (s *suite) valueNorms() {
	h := compute.Heads{Query: 4, KV: 2, Dim: 48}
	pool := s.d.NewPool(h, 2)
	c := s.fill(pool, h, 2, 3)
	for _, n := range []int{0, 1, 16, 41} {
		norms := [2][]float64{make([]float64, h.KV*n), make([]float64, h.KV*n)}
		for layer := range norms {
			s.s.ValueNorms(norms[layer], pool, layer, c.pages, n)
		}
		s.sync()
		for layer := range norms {
			for i, got := range norms[layer] {
				v := c.value(layer, i/n, i%n)
				if want := math.Sqrt(dot(v, v)); math.Abs(got-want) > 1e-12*want {
					s.Fatalf("layer %d, norm %d of %d: %g, want %g", layer, i, n, got, want)
				}
			}
		}
	}
}
