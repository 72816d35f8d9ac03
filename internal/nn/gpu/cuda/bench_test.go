//go:build cuda

package cuda

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/gpu/cuda/emulator"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// The benchmarks have the shapes of Llama-3.1-8B. They say nothing on the emulated driver.

func benchmarkCard(b *testing.B) (*device, *stream) {
	b.Helper()
	if err := usable(0); err != nil {
		b.Skipf("not run: %v", err)
	}
	if emulator.Present() {
		b.Skip("not run: speed is a card's")
	}
	d, err := open(0, gpu.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	s, err := d.NewStream(1)
	if err != nil {
		b.Fatal(err)
	}
	return d, s.(*stream)
}

func benchmarkBuffer(b *testing.B, d *device, s *stream, n int) gpu.Buffer {
	b.Helper()
	x, err := d.Alloc("x", n)
	if err != nil {
		b.Fatal(err)
	}
	s.launch("fill", "x", flat(n), threads, x.Addr, uint64(n), float(.01))
	return x
}

// benchmark runs op, which moves so many bytes and has so many floating point operations, after it has run once.
func benchmark(b *testing.B, s *stream, bytes, flops int, op func()) {
	b.Helper()
	op()
	if err := s.Sync(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(bytes))
	b.ResetTimer()
	for range b.N {
		op()
	}
	if err := s.Sync(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(flops)*float64(b.N)/b.Elapsed().Seconds()/1e12, "TFLOP/s")
}

func BenchmarkMatMul(b *testing.B) {
	const rows, cols = 14336, 4096
	for _, t := range []quant.Type{quant.F16, quant.Q8_0, quant.Q4_K, quant.Q6_K} {
		for _, tokens := range []int{1, 8, 64, 512} {
			b.Run(fmt.Sprintf("%v/%d", t, tokens), func(b *testing.B) {
				d, s := benchmarkCard(b)
				size, _ := t.Bytes(rows * cols)
				var weights [8]gpu.Matrix // so that none is in a cache
				for i := range weights {
					var err error
					if weights[i], err = d.Matrix("w", t, rows, cols, make([]byte, size)); err != nil {
						b.Fatal(err)
					}
				}
				a, out, n := benchmarkBuffer(b, d, s, tokens*cols), benchmarkBuffer(b, d, s, tokens*rows), 0
				benchmark(b, s, size, 2*tokens*rows*cols, func() {
					s.MatMul(out, a, tokens, &weights[n%len(weights)])
					n++
				})
			})
		}
	}
}

var benchmarkHeads = compute.Heads{Query: 32, KV: 8, Dim: 128}

func benchmarkPages(b *testing.B, pool gpu.Pool, n int) []gpu.Page {
	b.Helper()
	pages := make([]gpu.Page, n)
	for i := range pages {
		page, err := pool.New()
		if err != nil {
			b.Fatal(err)
		}
		if err := pool.Write(page, make([]float32, pool.Floats())); err != nil {
			b.Fatal(err)
		}
		pages[i] = page
	}
	return pages
}

func BenchmarkAttend(b *testing.B) {
	for _, shape := range []struct{ rows, tokens int }{{1, 1024}, {1, 8192}, {1, 32768}, {512, 2048}, {512, 8192}} {
		b.Run(fmt.Sprintf("%d rows at %d", shape.rows, shape.tokens), func(b *testing.B) {
			d, s := benchmarkCard(b)
			h := benchmarkHeads
			pool := d.NewPool(h, 1)
			pages := benchmarkPages(b, pool, shape.tokens/compute.PageTokens)
			n := shape.rows * h.Query * h.Dim
			q, out := benchmarkBuffer(b, d, s, n), benchmarkBuffer(b, d, s, n)
			batch := s.Batch(0, pool, []gpu.Run{{Rows: shape.rows, Position: shape.tokens - shape.rows, Pages: pages}})
			benchmark(b, s, 4*len(pages)*pool.Floats(), 4*shape.tokens*n, func() { s.Attend(batch, 0, out, q) })
		})
	}
}

func BenchmarkMove(b *testing.B) {
	d, s := benchmarkCard(b)
	pool, rope := d.NewPool(benchmarkHeads, 32), compute.NewRope(benchmarkHeads.Dim, 5e5, nil, true)
	to, from := benchmarkPages(b, pool, 128), benchmarkPages(b, pool, 128)
	angles := rope.Angles(nil, 1000)
	benchmark(b, s, 2*4*len(to)*pool.Floats(), 0, func() { s.Move(pool, to, 0, from, 0, len(to)*compute.PageTokens, angles, rope) })
}

// BenchmarkCopy copies pages between the host's memory and the pool, all layers of 16 pages at a time.
func BenchmarkCopy(b *testing.B) {
	for _, out := range []bool{false, true} {
		b.Run(fmt.Sprintf("out=%t", out), func(b *testing.B) {
			d, s := benchmarkCard(b)
			p := d.NewPool(benchmarkHeads, 32).(*pool)
			pages := benchmarkPages(b, p, 16)
			var host *pinned
			if err := d.do(func() (err error) { host, err = d.pin(4 * p.floats * len(pages)); return err }); err != nil {
				b.Fatal(err)
			}
			table, err := d.alloc("alloc", "table", int64(8*len(pages)))
			if err != nil {
				b.Fatal(err)
			}
			s.send(table, view(addresses(pages, len(pages)*compute.PageTokens)), "table")
			o := p.copyOf(host.address, table, len(pages), 0, 32, out)
			benchmark(b, s, len(host.bytes), 0, func() { s.push(o) })
		})
	}
}

func BenchmarkLargest(b *testing.B) {
	_, s := benchmarkCard(b)
	values := make([]float32, 8*131072)
	for i := range values {
		values[i] = float32(i*7919%131071) / 131071
	}
	benchmark(b, s, 4*len(values), 0, func() {
		if _, err := s.Largest(values, 131072, 32768); err != nil {
			b.Fatal(err)
		}
	})
}
