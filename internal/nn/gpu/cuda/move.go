//go:build cuda

package cuda

import (
	"slices"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// addresses are those of the first pages, as many as n tokens have.
func addresses(pages []gpu.Page, n int) []uint64 {
	all := make([]uint64, blocks(n, compute.PageTokens))
	for i := range all {
		all[i] = pages[i].Addr
	}
	return all
}

// interleaved is that of a rope; there may be none.
func interleaved(rope *compute.Rope) uint64 { return flag(rope != nil && rope.Interleaved()) }

// Move implements [gpu.Stream].
func (s *stream) Move(of gpu.Pool, to []gpu.Page, at int, from []gpu.Page, fromAt, n int, by []float32, rope *compute.Rope) {
	p := of.(*pool)
	if n == 0 {
		return
	}
	words := append(addresses(to, at+n), addresses(from, fromAt+n)...)
	source := uint64(8 * blocks(at+n, compute.PageTokens))
	bytes, angles := view(words), uint64(0)
	if by != nil {
		angles = uint64(len(bytes))
		bytes = append(slices.Clip(bytes), view(by[:p.heads.Dim])...)
	}
	s.await(p, -1)
	table := s.lend(bytes, "pages")
	if by != nil {
		angles += table
	}
	s.launch("move", "keys and values", [3]int{blocks(n, compute.PageTokens), p.layers * p.heads.KV, 1}, threads, table, uint64(at),
		table+source, uint64(fromAt), 0, 0, uint64(n), p.stride, uint64(p.heads.KV), uint64(p.heads.Dim), angles, interleaved(rope))
}

// Gather implements [gpu.Stream].
func (s *stream) Gather(of gpu.Pool, to, from []gpu.Page, chosen [][][]int) {
	p := of.(*pool)
	var numbers []int32
	starts := make([]int32, 0, p.layers*p.heads.KV+1)
	most, last := 0, -1
	for layer := range p.layers {
		for head := range p.heads.KV {
			list := chosen[layer][head]
			starts, most = append(starts, int32(len(numbers))), max(most, len(list))
			for _, i := range list {
				numbers, last = append(numbers, int32(i)), max(last, i)
			}
		}
	}
	starts = append(starts, int32(len(numbers)))
	if most == 0 {
		return
	}
	words := append(addresses(to, most), addresses(from, last+1)...)
	bytes := view(words)
	source, list := 8*blocks(most, compute.PageTokens), len(bytes)
	bytes = append(slices.Clip(bytes), view(starts)...)
	bytes = append(bytes, view(numbers)...)
	s.await(p, -1)
	table := s.lend(bytes, "chosen tokens")
	s.launch("move", "keys and values", [3]int{blocks(most, compute.PageTokens), p.layers * p.heads.KV, 1}, threads, table, 0,
		table+uint64(source), 0, table+uint64(list+4*len(starts)), table+uint64(list), 0, p.stride, uint64(p.heads.KV), uint64(p.heads.Dim),
		0, 0)
}

// Turn implements [gpu.Stream].
func (s *stream) Turn(of gpu.Pool, page gpu.Page, steps []int32, rope *compute.Rope) {
	p, known, which, angles := of.(*pool), map[int32]int32{0: 0}, make([]int32, len(steps)), []float32(nil)
	for i, by := range steps {
		n, ok := known[by]
		if !ok {
			n = int32(len(known))
			known[by] = n
			angles = rope.Angles(angles, int(by))
		}
		which[i] = n
	}
	if angles == nil {
		return
	}
	bytes := append(view(which), view(angles)...)
	s.await(p, -1)
	table := s.lend(bytes, "angles")
	s.launch("turn", "keys", [3]int{len(steps) / compute.PageTokens, 1, 1}, threads, page.Addr, table, p.stride, uint64(p.heads.KV),
		uint64(p.heads.Dim), table+uint64(4*len(which)), interleaved(rope))
}

// ValueNorms implements [gpu.Stream].
func (s *stream) ValueNorms(norms []float64, of gpu.Pool, layer int, pages []gpu.Page, n int) {
	p := of.(*pool)
	count := n * p.heads.KV
	norms = norms[:count]
	if n == 0 || !s.need(&s.numbers, 8*count) {
		return
	}
	s.await(p, layer)
	table := s.lend(view(addresses(pages, n)), "pages")
	s.launch("value_norms", "values", [3]int{blocks(count, 128), 1, 1}, 128, s.numbers.address, table, uint64(n), p.layer(layer),
		uint64(p.heads.KV), uint64(p.heads.Dim))
	s.read(view(norms), s.numbers.address, "values")
}
