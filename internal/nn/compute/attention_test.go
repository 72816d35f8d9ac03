package compute

import (
	"math"
	"slices"
	"testing"
)

// Attention is softmax(q·k/√d)·v over the tokens up to the row's own.
func TestAttend(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		for _, h := range []Heads{
			{Query: 9, KV: 3, Dim: 64},
			{Query: 4, KV: 4, Dim: 32},
			{Query: 6, KV: 1, Dim: 72},
			{Query: 2, KV: 2, Dim: 128},
		} {
			const position, rows = 21, 20
			pages, width := randomPages(h, position+rows), h.Query*h.Dim
			q := randomFloats(rows*width, 8)
			for i := range q {
				q[i] *= 6
			}
			out := make([]float32, len(q))
			NewCrew(2).Attend(out, q, h, []Run{{Rows: rows, Position: position, Pages: pages}})
			for i := range rows {
				for head := range h.Query {
					at := i*width + head*h.Dim
					want := attention(q[at:][:h.Dim], pages, head*h.KV/h.Query, position+i+1, h.Dim)
					for d := range want {
						if math.Abs(want[d]-float64(out[at+d])) > 2e-6 {
							t.Fatalf("%+v: row %d, head %d, dimension %d is %g, want %g", h, i, head, d, out[at+d], want[d])
						}
					}
				}
			}
		}
	})
}

// weights are the formula in float64, for one query.
func weights(q []float32, pages []Page, head, tokens, dim int) []float64 {
	weights, most, sum := make([]float64, tokens), math.Inf(-1), 0.0
	for t := range tokens {
		p, slot := pages[t/PageTokens], t%PageTokens
		for d := range dim {
			weights[t] += float64(q[d]) * float64(p.Keys[(head*dim+d)*PageTokens+slot])
		}
		weights[t] /= math.Sqrt(float64(dim))
		most = max(most, weights[t])
	}
	for t, w := range weights {
		weights[t] = math.Exp(w - most)
		sum += weights[t]
	}
	for t := range weights {
		weights[t] /= sum
	}
	return weights
}

// attention is what one query gets, in float64.
func attention(q []float32, pages []Page, head, tokens, dim int) []float64 {
	out := make([]float64, dim)
	for t, w := range weights(q, pages, head, tokens, dim) {
		p, slot := pages[t/PageTokens], t%PageTokens
		for d := range dim {
			out[d] += w * float64(p.Values[(head*PageTokens+slot)*dim+d])
		}
	}
	return out
}

// A row's attention is the same bits in any piece of its sequence, beside any other sequence, and on any number of threads. What lies
// behind it in its page does not matter.
func TestAttendIsExact(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		h := Heads{Query: 9, KV: 3, Dim: 64}
		const rows = 75
		pages, width := randomPages(h, rows), h.Query*h.Dim
		q := randomFloats(rows*width, 8)
		whole := make([]float32, len(q))
		NewCrew(1).Attend(whole, q, h, []Run{{Rows: rows, Pages: pages}})
		for _, piece := range []int{1, 3, 16, 50} {
			got := make([]float32, len(q))
			for at := 0; at < rows; at += piece {
				end := min(at+piece, rows)
				other := randomFloats(5*width, 3)
				both, out := slices.Concat(other, q[at*width:end*width]), make([]float32, (5+end-at)*width)
				seen := spoil(h, pages, end)
				NewCrew(3).Attend(out, both, h, []Run{{Rows: 5, Position: 30, Pages: randomPages(h, 35)}, {Rows: end - at, Position: at, Pages: seen}})
				copy(got[at*width:], out[5*width:])
			}
			if !same(got, whole) {
				t.Errorf("pieces of %d rows give other bits", piece)
			}
		}
	})
}

// Kernels of one name give the same bits of attention, for any shape.
func TestAttendIsTheSameInKernelsOfOneName(t *testing.T) {
	outputs := map[string][][]float32{}
	for _, k := range available() {
		before := active
		active = k
		var all [][]float32
		for _, h := range []Heads{
			{Query: 9, KV: 3, Dim: 64},
			{Query: 8, KV: 1, Dim: 128},
			{Query: 6, KV: 1, Dim: 72},
			{Query: 2, KV: 2, Dim: 8},
			{Query: 5, KV: 1, Dim: 40},
		} {
			for _, run := range []Run{{Rows: 1, Position: 0}, {Rows: 1, Position: 700}, {Rows: 37, Position: 5}, {Rows: 20, Position: 1100}} {
				run.Pages = spoil(h, randomPages(h, run.Position+run.Rows), run.Position+run.Rows)
				q := randomFloats(run.Rows*h.Query*h.Dim, 8)
				out := make([]float32, len(q))
				NewCrew(2).Attend(out, q, h, []Run{run})
				all = append(all, out)
			}
		}
		active = before
		for i, out := range outputs[k.name] {
			if !same(out, all[i]) {
				t.Errorf("two kernels %s give other bits in case %d", k.name, i)
			}
		}
		outputs[k.name] = all
	}
}

// spoil returns the pages of the first tokens, with numbers that are not any behind them.
func spoil(h Heads, pages []Page, tokens int) []Page {
	pages = slices.Clone(pages[:(tokens+PageTokens-1)/PageTokens])
	last := &pages[len(pages)-1]
	last.Keys, last.Values = slices.Clone(last.Keys), slices.Clone(last.Values)
	nan := slices.Repeat([]float32{float32(math.NaN())}, h.KV*h.Dim)
	for slot := (tokens-1)%PageTokens + 1; slot < PageTokens; slot++ {
		last.Put(h, slot, nan, nan)
	}
	return pages
}
