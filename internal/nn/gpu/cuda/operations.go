//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"strings"

	"gorgonia.org/cu"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

const (
	threads   = 256  // of a block, where a kernel does not ask for another number
	maxBlocks = 2048 // of kernels that go through their numbers in steps
)

// blocks is how many blocks of size have n.
func blocks(n, size int) int { return (n + size - 1) / size }

func flat(n int) [3]int { return [3]int{min(blocks(n, threads), maxBlocks), 1, 1} }

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func float(x float32) uint64 { return uint64(math.Float32bits(x)) }

// want panics if a buffer is too small: the caller's mistake.
func want(operation string, b gpu.Buffer, n int) {
	if b.N < n {
		panic(fmt.Sprintf("cuda: %s: %d floats of %s, want %d", operation, b.N, b.What, n))
	}
}

func rowBytes(w *gpu.Matrix) int { return len(w.Data) / w.Rows }

func format(w *gpu.Matrix) string { return strings.ToLower(w.Type.String()) }

// Rows implements [gpu.Stream].
func (s *stream) Rows(out gpu.Buffer, w *gpu.Matrix, numbers []int32) {
	want("rows", out, len(numbers)*w.Cols)
	for _, n := range numbers {
		if n < 0 || int(n) >= w.Rows {
			panic(fmt.Sprintf("cuda: rows: row %d of %d of %s", n, w.Rows, w.What))
		}
	}
	if len(numbers) == 0 {
		return
	}
	list := s.lend(view(numbers), w.What)
	s.launch("rows_"+format(w), w.What, [3]int{len(numbers), 1, 1}, 128, out.Addr, w.Addr, list, uint64(w.Cols), uint64(rowBytes(w)))
}

// MatMul implements [gpu.Stream].
func (s *stream) MatMul(out, a gpu.Buffer, rows int, w *gpu.Matrix) {
	if a.N != rows*w.Cols || out.N != rows*w.Rows {
		panic(fmt.Sprintf("cuda: %d × %d weights, %d rows: input of %d, output of %d floats", w.Rows, w.Cols, rows, a.N, out.N))
	}
	if rows == 0 {
		return
	}
	kind, grid, block := "tile_", [3]int{blocks(w.Rows, 64), blocks(rows, 64), 1}, 512
	if rows <= 8 {
		kind, grid, block = "gemv8_", [3]int{blocks(w.Rows, 16), 1, 1}, 128
	}
	if rows == 1 {
		kind = "gemv_"
	}
	s.launch(kind+format(w), w.What, grid, block, out.Addr, a.Addr, w.Addr, uint64(rows), uint64(w.Rows), uint64(w.Cols),
		uint64(rowBytes(w)))
}

// Norm implements [gpu.Stream].
func (s *stream) Norm(out, x, weights gpu.Buffer, epsilon float32) {
	want("norm", out, x.N)
	rows := x.N / weights.N
	s.launch("norm", weights.What, [3]int{blocks(rows, 4), 1, 1}, 128, out.Addr, x.Addr, weights.Addr, uint64(rows), uint64(weights.N),
		float(epsilon))
}

// Add implements [gpu.Stream].
func (s *stream) Add(x, y gpu.Buffer) {
	want("add", x, y.N)
	s.launch("add", x.What, flat(y.N), threads, x.Addr, y.Addr, uint64(y.N))
}

// AddRow implements [gpu.Stream].
func (s *stream) AddRow(x, bias gpu.Buffer) {
	if x.N%bias.N != 0 {
		panic(fmt.Sprintf("cuda: add_row: %d floats of %s, rows of %d of %s", x.N, x.What, bias.N, bias.What))
	}
	s.launch("add_row", bias.What, flat(x.N), threads, x.Addr, bias.Addr, uint64(x.N), uint64(bias.N))
}

// Gate implements [gpu.Stream].
func (s *stream) Gate(g, u gpu.Buffer) {
	want("gate", u, g.N)
	s.launch("gate", g.What, flat(g.N), threads, g.Addr, u.Addr, uint64(g.N))
}

// Rotate implements [gpu.Stream].
func (s *stream) Rotate(x, angles gpu.Buffer, rope *compute.Rope) {
	dim := rope.Dim()
	rows := angles.N / dim
	if rows == 0 {
		panic("cuda: rotate: no angles")
	}
	s.launch("rotate", x.What, [3]int{rows, 1, 1}, threads, x.Addr, angles.Addr, uint64(x.N/rows), uint64(dim), flag(rope.Interleaved()))
}

// Keep implements [gpu.Stream].
func (s *stream) Keep(x gpu.Buffer, width int, numbers []int32) {
	n := len(numbers) * width
	want("keep", x, n)
	for _, i := range numbers {
		want("keep", x, (int(i)+1)*width)
	}
	if n == 0 || !s.need(&s.kept, 4*n) {
		return
	}
	list := s.lend(view(numbers), x.What)
	s.launch("keep", x.What, [3]int{len(numbers), min(blocks(width, threads), 64), 1}, threads, s.kept.address, x.Addr, list, uint64(width))
	s.push(operation{name: "keep", what: x.What, run: func() error {
		return cu.MemcpyDtoDAsync(cu.DevicePtr(x.Addr), cu.DevicePtr(s.kept.address), 4*int64(n), s.cu)
	}})
}

// Largest implements [gpu.Stream].
func (s *stream) Largest(values []float32, width, k int) ([][]int, error) {
	rows := len(values) / width
	if k < 0 || k > width {
		panic(fmt.Sprintf("cuda: the %d largest of %d", k, width))
	}
	places := make([]int32, rows*k)
	if len(places) > 0 && s.need(&s.numbers, 4*len(places)) {
		list := s.lend(view(values[:rows*width]), "values")
		s.topK(s.numbers.address, list, rows, width, k)
		s.read(view(places), s.numbers.address, "values")
	}
	s.drain()
	if err := s.take(); err != nil {
		return nil, err
	}
	all := make([][]int, rows)
	for i := range all {
		all[i] = make([]int, k)
		for j := range all[i] {
			all[i][j] = int(places[i*k+j])
		}
	}
	return all, nil
}

// topK writes the places of the k largest numbers of rows of width floats.
func (s *stream) topK(places, values uint64, rows, width, k int) {
	s.launch("top_k", "values", [3]int{rows, 1, 1}, 1024, places, values, uint64(width), uint64(k))
}

// Argmax implements [gpu.Stream].
func (s *stream) Argmax(places []int32, x gpu.Buffer, width int) {
	want("argmax", x, len(places)*width)
	if len(places) == 0 || !s.need(&s.numbers, 4*len(places)) {
		return
	}
	s.launch("argmax", x.What, [3]int{len(places), 1, 1}, 256, s.numbers.address, x.Addr, uint64(width))
	s.read(view(places), s.numbers.address, x.What)
}
