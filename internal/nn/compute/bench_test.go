package compute

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// Products of the shapes of a small model: a prompt's rows, and one row as when decoding. GFLOP/s counts two operations
// per weight and row.
func BenchmarkMatMul(b *testing.B) {
	const rows, cols = 1536, 768
	for _, t := range []quant.Type{
		quant.F32, quant.F16, quant.Q8_0, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q3_K, quant.Q4_K,
		quant.Q5_K, quant.Q6_K, quant.IQ4_NL,
	} {
		w := randomMatrix(b, t, rows, cols)
		for _, m := range []int{1, 16, 512} {
			a, out := randomFloats(m*cols, 1), make([]float32, m*rows)
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%v/rows=%d/threads=%d", t, m, threads), func(b *testing.B) {
					crew := NewCrew(threads)
					b.ReportAllocs()
					for b.Loop() {
						crew.MatMul(out, a, m, &w)
					}
					b.ReportMetric(2*float64(m*rows*cols)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}

// Attention of a prompt's last rows, and of one row.
func BenchmarkAttend(b *testing.B) {
	h := Heads{Query: 9, KV: 3, Dim: 64}
	for _, c := range []struct{ position, rows int }{{0, 512}, {3968, 128}, {511, 1}, {4095, 1}} {
		b.Run(fmt.Sprintf("at=%d/rows=%d", c.position, c.rows), func(b *testing.B) {
			q, pages := randomFloats(c.rows*h.Query*h.Dim, 1), randomPages(h, c.position+c.rows)
			out := make([]float32, len(q))
			crew := NewCrew(1)
			b.ReportAllocs()
			for b.Loop() {
				crew.Attend(out, q, h, []Run{{Rows: c.rows, Position: c.position, Pages: pages}})
			}
			flops := 0
			for i := range c.rows {
				flops += 4 * (c.position + i + 1) * h.Query * h.Dim
			}
			b.ReportMetric(float64(flops)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

func BenchmarkGate(b *testing.B) {
	g, u := randomFloats(1536*16, 1), randomFloats(1536*16, 2)
	crew := NewCrew(1)
	b.SetBytes(int64(8 * len(g)))
	for b.Loop() {
		crew.Gate(g, u)
	}
}

// Unpacking a group of rows, which a product of several rows of the input does for each.
func BenchmarkUnpack(b *testing.B) {
	const cols = 768
	for _, t := range quant.Types() {
		b.Run(t.String(), func(b *testing.B) {
			w, to := randomMatrix(b, t, groupRows, cols), make([]float32, groupRows*cols)
			var rows [groupRows][]byte
			for i := range rows {
				rows[i] = w.row(i)
			}
			b.SetBytes(int64(len(w.Data)))
			for b.Loop() {
				active.unpack(t, to, &rows)
			}
		})
	}
}

// Products of a group with two rows of the input, and with one.
func BenchmarkTile(b *testing.B) {
	for _, k := range []int{64, 576, 1536} {
		x, y, group := randomFloats(k, 1), randomFloats(k, 2), randomFloats(groupRows*k, 3)
		var p, q [groupRows]float32
		b.Run(fmt.Sprintf("rows=1/columns=%d", k), func(b *testing.B) {
			for b.Loop() {
				active.tile(k, x, nil, group, &p, nil)
			}
		})
		b.Run(fmt.Sprintf("rows=2/columns=%d", k), func(b *testing.B) {
			for b.Loop() {
				active.tile(k, x, y, group, &p, &q)
			}
		})
	}
}

func BenchmarkNorm(b *testing.B) {
	x, w := randomFloats(576*16, 1), randomFloats(576, 2)
	out, crew := make([]float32, len(x)), NewCrew(1)
	b.SetBytes(int64(4 * len(x)))
	for b.Loop() {
		crew.Norm(out, x, w, 1e-5)
	}
}

func BenchmarkSoftmax(b *testing.B) {
	for _, n := range []int{16, 512, 4096} {
		b.Run(fmt.Sprintf("tokens=%d", n), func(b *testing.B) {
			x, y := randomFloats(n, 1), make([]float32, n)
			b.SetBytes(int64(4 * n))
			for b.Loop() {
				copy(y, x)
				active.softmax(y)
			}
		})
	}
}
