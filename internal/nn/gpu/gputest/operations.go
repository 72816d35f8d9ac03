package gputest

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/nn/quant/quanttest"
)

// buffers: what is written is copied at the call, also if it is more than a device takes at a time, and operations come in order.
func (s *suite) buffers() {
	floats := s.normal(1_200_000)
	written := slices.Clone(floats)
	b := s.up(written)
	clear(written)
	s.same("a long buffer", s.down(b), floats)
	part := b.Slice(1001, 1007)
	first, second := make([]float32, 6), make([]float32, 6)
	s.s.Read(first, part)
	s.s.Write(part, []float32{1, 2, 3, 4, 5, 6})
	s.s.Read(second, part)
	s.sync()
	s.same("before a write", first, floats[1001:1007])
	s.same("behind a write", second, []float32{1, 2, 3, 4, 5, 6})
	copy(floats[1001:], second)
	s.same("beside a write", s.down(b.Slice(990, 1020)), floats[990:1020])
	for i := range 3000 { // many small writes
		s.s.Write(b.Slice(i, i+1), []float32{float32(i)})
		floats[i] = float32(i)
	}
	s.same("small writes", s.down(b.First(5000)), floats[:5000])
	before := s.d.Memory()
	if b, err := s.d.Alloc("something", 1000); err != nil {
		s.Error(err)
	} else if now := s.d.Memory(); before.Total > 0 && now.Used != before.Used+4000 {
		s.Errorf("%d bytes are used, and %d were before 4000 more", now.Used, before.Used)
	} else {
		s.d.Free(b)
	}
	if now := s.d.Memory().Used; now != before.Used {
		s.Errorf("%d bytes are used, and %d were before", now, before.Used)
	}
	if b, err := s.d.Alloc("nothing", 0); err != nil || b.N != 0 {
		s.Errorf("no floats: %v, %v", b, err)
	}
	s.d.Free(gpu.Buffer{})
}

// panics: wrong sizes are the caller's mistakes.
func (s *suite) panics() {
	panics := func(what string, f func()) {
		s.Helper()
		defer func() {
			if recover() == nil {
				s.Errorf("%s does not panic", what)
			}
		}()
		f()
	}
	w := s.matrix(quant.F32, 8, 16, 1)
	a := s.alloc(64)
	panics("a product with too few floats", func() { s.s.MatMul(a.First(8), a.First(15), 1, w) })
	panics("a product for too few floats", func() { s.s.MatMul(a.First(7), a.First(16), 1, w) })
	panics("a row that is not there", func() { s.s.Rows(a, w, []int32{8}) })
	panics("a part that is not there", func() { a.Slice(1, 65) })
	h := compute.Heads{Query: 1, KV: 1, Dim: 8}
	pool := s.d.NewPool(h, 1)
	panics("a run with too few pages", func() {
		b := s.s.Batch(0, pool, []gpu.Run{{Rows: 1, Position: 16, Pages: s.take(pool, 1)}})
		s.s.Attend(b, 0, a.First(8), a.Slice(8, 16))
	})
	if _, err := s.d.Matrix("short", quant.Q4_0, 2, 32, make([]byte, 35)); err == nil {
		s.Error("a matrix of too few bytes has no error")
	}
	if _, err := s.d.Matrix("blocks", quant.Q4_0, 2, 40, make([]byte, 36)); err == nil {
		s.Error("a matrix with a part of a block has no error")
	}
}

func (s *suite) matrix(t quant.Type, rows, cols int, seed uint64) *gpu.Matrix {
	s.Helper()
	m, err := s.d.Matrix(fmt.Sprintf("weights in %v", t), t, rows, cols, quanttest.Random(t, rows*cols, .1, seed))
	if err != nil {
		s.Fatal(err)
	}
	return &m
}

// columns is a number of columns with which a format's last block ends anywhere.
func columns(t quant.Type) int {
	switch block, _ := t.Block(); block {
	case 1:
		return 72
	case 32:
		return 96
	}
	return 512
}

// rows: the weights are those of package quant.
func (s *suite) rows() {
	for _, t := range quant.Types() {
		w := s.matrix(t, 7, columns(t), 3)
		numbers := []int32{6, 0, 3, 3}
		out := s.alloc(len(numbers) * w.Cols)
		s.s.Rows(out, w, numbers)
		want := make([]float32, out.N)
		for i, n := range numbers {
			w.Row(want[i*w.Cols:], int(n))
		}
		s.same(t.String(), s.down(out), want)
	}
	numbers := make([]byte, 0, 2<<16) // all that 16 bits can be
	for i := range 1 << 16 {
		numbers = append(numbers, byte(i), byte(i>>8))
	}
	for _, t := range []quant.Type{quant.F16, quant.BF16} {
		w, err := s.d.Matrix("all numbers", t, 1, 1<<16, numbers)
		if err != nil {
			s.Fatal(err)
		}
		out, want := s.alloc(1<<16), make([]float32, 1<<16)
		s.s.Rows(out, &w, []int32{0})
		w.Row(want, 0)
		s.same(t.String(), s.down(out), want)
	}
}

// products: near to sums in float64, and a row's are the same bits whatever other rows there are.
func (s *suite) products() {
	for _, t := range quant.Types() {
		cols, wrows, rows := columns(t), 70, 67
		w, input := s.matrix(t, wrows, cols, 4), s.normal(67*cols)
		weights := make([]float32, wrows*cols)
		quant.Dequantize(t, weights, w.Data)
		want, scale := make([]float64, rows*wrows), make([]float64, rows*wrows)
		for r := range rows {
			for n := range wrows {
				for k, x := range input[r*cols:][:cols] {
					y := float64(x) * float64(weights[n*cols+k])
					want[r*wrows+n] += y
					scale[r*wrows+n] += math.Abs(y)
				}
			}
		}
		a, out := s.up(input), s.alloc(rows*wrows)
		s.s.MatMul(out, a, rows, w)
		all := s.down(out)
		s.near(t.String(), all, want, scale, 1e-6)
		for _, part := range []int{1, 2, 8, 9} {
			some := s.alloc(part * wrows)
			for _, from := range []int{0, rows - part} {
				s.s.MatMul(some, a.Slice(from*cols, (from+part)*cols), part, w)
				s.same(fmt.Sprintf("%v, %d rows from %d on", t, part, from), s.down(some), all[from*wrows:(from+part)*wrows])
			}
		}
	}
	w := s.matrix(quant.F32, 3, 8, 5) // the least
	a, out := s.up(s.normal(8)), s.alloc(3)
	s.s.MatMul(out, a, 1, w)
	s.down(out)
}

// vectors: norms, sums, gates, and rows that move together.
func (s *suite) vectors() {
	for _, width := range []int{8, 64, 576} {
		x, weights := s.normal(5*width), s.normal(width)
		want := make([]float64, len(x))
		for i := range 5 {
			row := x[i*width:][:width]
			factor := 1 / math.Sqrt(dot(row, row)/float64(width)+1e-5)
			for j, v := range row {
				want[i*width+j] = float64(v) * factor * float64(weights[j])
			}
		}
		in, w, out := s.up(x), s.up(weights), s.alloc(len(x))
		s.s.Norm(out, in, w, 1e-5)
		s.near("norm", s.down(out), want, nil, 1e-6)
		s.s.Norm(in, in, w, 1e-5)
		s.near("norm in place", s.down(in), want, nil, 1e-6)
	}
	x, y, bias := s.normal(7*40), s.normal(7*40), s.normal(40)
	a := s.up(x)
	s.s.Add(a, s.up(y))
	compute.Add(x, y)
	s.same("add", s.down(a), x)
	s.s.AddRow(a, s.up(bias))
	compute.AddRow(x, bias)
	s.same("add a row", s.down(a), x)
	x, y = s.normal(1000), s.normal(1000)
	copy(x, []float32{0, 1e-8, -1e-8, 20, -20, 50, -50, 80, -80, 1000, -1000})
	want, scale := make([]float64, len(x)), make([]float64, len(x))
	for i, v := range x {
		want[i] = float64(v) / (1 + math.Exp(-float64(v))) * float64(y[i])
		scale[i] = math.Abs(want[i]) + 1e-28
	}
	g := s.up(x)
	s.s.Gate(g, s.up(y))
	s.near("gate", s.down(g), want, scale, 1e-6)
	rows := s.normal(6 * 24)
	for _, numbers := range [][]int32{{}, {0}, {5}, {1, 2, 5}, {0, 1, 2, 3, 4, 5}} {
		kept := slices.Clone(rows)
		for i, from := range numbers {
			copy(kept[i*24:][:24], rows[from*24:][:24])
		}
		b := s.up(rows)
		s.s.Keep(b, 24, numbers)
		s.same(fmt.Sprint("keep rows ", numbers), s.down(b.First(24*len(numbers))), kept[:24*len(numbers)])
	}
}

// rotate: the bits of package compute, and back again.
func (s *suite) rotate() {
	for _, interleaved := range []bool{false, true} {
		for _, dim := range []int{16, 64} {
			rope := compute.NewRope(dim, 1e4, nil, interleaved)
			x, width := s.normal(5*3*dim), 3*dim
			want := slices.Clone(x)
			var angles, back []float32
			for i, position := range []int{0, 1, 77, 5000, 100_000} {
				angles, back = rope.Angles(angles, position), rope.Angles(back, -position)
				rope.Rotate(want[i*width:][:width], angles[i*dim:][:dim])
			}
			b := s.up(x)
			s.s.Rotate(b, s.up(angles), rope)
			s.same("rotate", s.down(b), want)
			s.s.Rotate(b, s.up(back), rope)
			same := make([]float64, len(x))
			scale := make([]float64, len(x))
			for i, v := range x {
				same[i], scale[i] = float64(v), 4
			}
			s.near("rotate there and back", s.down(b), same, scale, 1e-6)
		}
	}
}

// argmax: of equal numbers the first.
func (s *suite) argmax() {
	infinity := float32(math.Inf(1))
	for _, width := range []int{1, 5, 256, 1003} {
		rows := 6
		x := s.normal(rows * width)
		for i := range width {
			x[width+i], x[2*width+i], x[3*width+i] = -3, float32(i%7), -infinity
		}
		if width > 4 {
			x[width-1] = 100
			x[4*width+2], x[4*width+4] = infinity, infinity
		}
		want := make([]int32, rows)
		for r := range rows {
			row := x[r*width:][:width]
			want[r] = int32(slices.Index(row, slices.Max(row)))
		}
		got := make([]int32, rows)
		s.s.Argmax(got, s.up(x), width)
		s.sync()
		if !slices.Equal(got, want) {
			s.Errorf("largest of rows of %d at %v, want %v", width, got, want)
		}
	}
}

// largest: the places of package compute.
func (s *suite) largest() {
	infinity := float32(math.Inf(1))
	for _, width := range []int{1, 2, 33, 1025, 3000} {
		values := make([]float32, 0, 5*width)
		for i := range 5 * width {
			x := float32(s.random.NormFloat64())
			switch i / width {
			case 1:
				x = float32(s.random.IntN(5)) // ties
			case 2:
				x = -7
			case 3:
				x = []float32{0, float32(math.Copysign(0, -1)), infinity, -infinity, 1e-45, -1e-45, 3}[s.random.IntN(7)]
			case 4:
				x = math.Float32frombits(0x3f800000 + uint32(s.random.IntN(3))) // they differ in the last bits alone
			}
			values = append(values, x)
		}
		for _, k := range []int{0, 1, width / 3, width / 2, width - 1, width} {
			got, err := s.s.Largest(values, width, k)
			if err != nil {
				s.Fatal(err)
			}
			for r, row := range got {
				if want := compute.Largest(values[r*width:][:width], k); !slices.Equal(row, want) {
					s.Fatalf("the %d largest of %d, row %d: %v, want %v", k, width, r, row, want)
				}
			}
		}
	}
}

// goroutines: each has a stream of its own.
func (s *suite) goroutines() {
	w := s.matrix(quant.Q8_0, 33, 64, 6)
	h := compute.Heads{Query: 2, KV: 1, Dim: 16}
	pool := s.d.NewPool(h, 2)
	inputs, outputs := make([][]float32, 4), make([][]float32, 4)
	for i := range inputs {
		inputs[i], outputs[i] = s.normal(10*64), make([]float32, 10*33)
	}
	var group sync.WaitGroup
	for i := range inputs {
		stream := s.stream()
		a, out := s.alloc(10*64), s.alloc(10*33)
		page := s.take(pool, 1)[0]
		group.Go(func() {
			for n := range 20 {
				floats := make([]float32, pool.Floats())
				floats[0] = float32(100*i + n)
				if err := pool.Write(page, floats); err != nil {
					s.Error(err)
				}
				stream.Write(a, inputs[i])
				stream.MatMul(out, a, 10, w)
				stream.Read(outputs[i], out)
				if err := stream.Sync(); err != nil {
					s.Error(err)
				}
				if err := pool.Read(floats, page); err != nil || floats[0] != float32(100*i+n) {
					s.Errorf("page of goroutine %d: %g, %v", i, floats[0], err)
				}
			}
		})
	}
	group.Wait()
	for i := range inputs {
		out := s.alloc(10 * 33)
		s.s.MatMul(out, s.up(inputs[i]), 10, w)
		s.same("a product beside others", outputs[i], s.down(out))
	}
}
