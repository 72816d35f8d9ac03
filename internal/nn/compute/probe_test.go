package compute

import (
	"fmt"
	"math"
	"testing"
)

// TestProbe: what rows attend to is the formula in float64, in all forms.
func TestProbe(t *testing.T) {
	h := Heads{Query: 6, KV: 2, Dim: 32}
	const position, rows = 45, 37
	pages := spoil(h, randomPages(h, position+rows), position+rows)
	q := randomFloats(rows*h.Query*h.Dim, 8)
	eachKernel(t, func(t *testing.T) {
		for _, p := range []Probe{
			{Tokens: position},
			{Tokens: position, Within: true},
			{Tokens: position, Rows: Position},
			{Tokens: position, Rows: ValueNorm, Within: true},
			{Tokens: position + rows},
			{Tokens: position + 5, Most: true},
			{Tokens: 3},
		} {
			t.Run(fmt.Sprintf("%d/%d/%t/%t", p.Tokens, p.Rows, p.Within, p.Most), func(t *testing.T) {
				got := p
				got.Sums = NewProbe(h, p.Tokens).Sums
				NewCrew(1).Attend(make([]float32, len(q)), q, h, []Run{{Rows: rows, Position: position, Pages: pages, Probe: &got}})
				for i, want := range attended(h, p, q, pages, position) {
					if x := float64(got.Sums[i]); math.Abs(x-want) > 1e-5*max(1, want) {
						t.Fatalf("head %d, token %d: %g, want %g", i/p.Tokens, i%p.Tokens, x, want)
					}
				}
			})
		}
	})
}

// attended are the sums of a probe in float64.
func attended(h Heads, p Probe, q []float32, pages []Page, position int) []float64 {
	sums := make([]float64, h.KV*p.Tokens)
	for row := range len(q) / (h.Query * h.Dim) {
		tokens := position + row + 1
		for head := range h.Query {
			kv := head * h.KV / h.Query
			w := weights(q[(row*h.Query+head)*h.Dim:][:h.Dim], pages, kv, tokens, h.Dim)
			count, total := 1.0, 0.0
			switch p.Rows {
			case Position:
				count = float64(tokens)
			case ValueNorm:
				count = 0
				for _, v := range pages[(tokens-1)/PageTokens].Values[(kv*PageTokens+(tokens-1)%PageTokens)*h.Dim:][:h.Dim] {
					count += float64(v) * float64(v)
				}
				count = math.Sqrt(count)
			}
			w = w[:min(len(w), p.Tokens)]
			for _, x := range w {
				total += x
			}
			if !p.Within {
				total = 1
			}
			for i, x := range w {
				x *= count / total
				if at := kv*p.Tokens + i; p.Most {
					sums[at] = max(sums[at], x)
				} else {
					sums[at] += x
				}
			}
		}
	}
	return sums
}

// TestProbeIsTheSameOnAnyThreads: the number of threads does not change the bits, nor do calls with whole tasks each, nor a
// probe the output.
func TestProbeIsTheSameOnAnyThreads(t *testing.T) {
	h := Heads{Query: 9, KV: 3, Dim: 64}
	const position, rows = 900, 100
	pages, width := randomPages(h, position+rows), h.Query*h.Dim
	q := randomFloats(rows*width, 8)
	plain := make([]float32, len(q))
	NewCrew(1).Attend(plain, q, h, []Run{{Rows: rows, Position: position, Pages: pages}})
	one := NewProbe(h, position)
	NewCrew(1).Attend(make([]float32, len(q)), q, h, []Run{{Rows: rows, Position: position, Pages: pages, Probe: one}})
	for threads := 2; threads < 6; threads++ {
		p, out := NewProbe(h, position), make([]float32, len(q))
		for at := 0; at < rows; at += 3 * blockRows {
			n := min(3*blockRows, rows-at)
			run := Run{Rows: n, Position: position + at, Pages: pages, Probe: p}
			NewCrew(threads).Attend(out[at*width:][:n*width], q[at*width:][:n*width], h, []Run{run})
		}
		if !same(p.Sums, one.Sums) || !same(out, plain) {
			t.Errorf("%d threads give other bits", threads)
		}
	}
}
