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
