package minilm

import (
	"context"
	"math"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

// scratch is the memory of one forward pass. Rows are tokens.
type scratch struct {
	hidden, next []float32 // [rows][hidden]
	q, k, v      []float32 // [rows][hidden]: queries, keys and values
	mixed        []float32 // [rows][hidden]
	wide         []float32 // [rows][intermediate]
	heads        []head    // for each text and head
}

// grow makes room for that many rows.
func (s *scratch) grow(rows int, c config) {
	for _, b := range []*[]float32{&s.hidden, &s.next, &s.q, &s.k, &s.v, &s.mixed} {
		*b = compute.Grow(*b, rows*c.Hidden)
	}
	s.wide = compute.Grow(s.wide, rows*c.Intermediate)
}

// forward computes the vectors of a batch. The rows of all its texts go through the layers together; only attention
// looks from row to row, and stays within a text. Before each layer cores says on how many it may compute.
func (m *Model) forward(ctx context.Context, s *scratch, b batch, cores func() (int, error), vectors [][]float32) error {
	s.grow(b.rows, m.config)
	m.look(s, b)
	spans := b.spans()
	for i := range m.weights.blocks {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		threads, err := cores()
		if err != nil {
			return err
		}
		layer := &m.weights.blocks[i]
		each(threads, b.rows, func(from, to int) {
			layer.query.rows(s.q, s.hidden, from, to)
			layer.key.rows(s.k, s.hidden, from, to)
			layer.value.rows(s.v, s.hidden, from, to)
		})
		m.attend(s, spans, threads)
		each(threads, b.rows, func(from, to int) { m.transform(s, layer, from, to) })
	}
	for i, span := range spans {
		vectors[b.first+i] = pool(s.hidden[span.from*m.config.Hidden:span.to*m.config.Hidden], m.config.Hidden)
	}
	return nil
}

// span is the rows of one text.
type span struct{ from, to int }

func (b batch) spans() []span {
	spans := make([]span, len(b.tokens))
	at := 0
	for i, ids := range b.tokens {
		spans[i] = span{at, at + len(ids)}
		at += len(ids)
	}
	return spans
}

// look writes the tokens' embeddings into s.hidden.
func (m *Model) look(s *scratch, b batch) {
	n, row := m.config.Hidden, 0
	for _, ids := range b.tokens {
		for place, id := range ids {
			out := s.hidden[row*n:][:n]
			word, position := m.weights.words[int(id)*n:][:n], m.weights.positions[place*n:][:n]
			for i := range out {
				out[i] = word[i] + position[i]
			}
			m.weights.embedded.apply(out, m.config.Epsilon)
			row++
		}
	}
}

// transform does what follows attention in a layer, on some rows.
func (m *Model) transform(s *scratch, layer *block, from, to int) {
	n := m.config.Hidden
	layer.attended.rows(s.next, s.mixed, from, to)
	addRows(s.next, s.hidden, n, from, to)
	layer.afterAttention.rows(s.next, n, from, to, m.config.Epsilon)
	layer.up.rows(s.wide, s.next, from, to)
	gelu(s.wide[from*layer.up.out : to*layer.up.out])
	layer.down.rows(s.hidden, s.wide, from, to)
	addRows(s.hidden, s.next, n, from, to)
	layer.afterIntermediate.rows(s.hidden, n, from, to, m.config.Epsilon)
}

// crew computes on the calling goroutine: the model spreads its work itself.
var crew = compute.NewCrew(1)

// rows computes y = x·wᵀ + b for some rows.
func (l *linear) rows(y, x []float32, from, to int) {
	if l.in%compute.Columns == 0 {
		w := compute.Floats(l.out, l.in, l.w)
		crew.MatMul(y[from*l.out:to*l.out], x[from*l.in:to*l.in], to-from, &w)
	} else {
		matmul(y[from*l.out:to*l.out], x[from*l.in:to*l.in], l.w, to-from, l.out, l.in)
	}
	for row := from; row < to; row++ {
		out := y[row*l.out:][:l.out]
		for i, b := range l.b {
			out[i] += b
		}
	}
}

// addRows adds some rows of b, of width n, to those of a.
func addRows(a, b []float32, n, from, to int) {
	a, b = a[from*n:to*n], b[from*n:to*n]
	for i, x := range b {
		a[i] += x
	}
}

func (l layerNorm) rows(x []float32, n, from, to int, epsilon float64) {
	for row := from; row < to; row++ {
		l.apply(x[row*n:][:n], epsilon)
	}
}

// apply brings x to mean 0 and variance 1, then scales and shifts each number.
func (l layerNorm) apply(x []float32, epsilon float64) {
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		d := float64(v) - mean
		squares += d * d
	}
	scale := 1 / math.Sqrt(squares/float64(len(x))+epsilon)
	for i, v := range x {
		x[i] = float32((float64(v)-mean)*scale)*l.scale[i] + l.shift[i]
	}
}

// gelu is the Gaussian error linear unit, in its exact form.
func gelu(x []float32) {
	for i, v := range x {
		d := float64(v)
		x[i] = float32(d * 0.5 * (1 + math.Erf(d/math.Sqrt2)))
	}
}

// pool is the mean of the rows, brought to length 1.
func pool(rows []float32, n int) []float32 {
	sums := make([]float64, n)
	for i, v := range rows {
		sums[i%n] += float64(v)
	}
	var squares float64
	for _, v := range sums {
		squares += v * v
	}
	out := make([]float32, n)
	if squares == 0 {
		return out
	}
	scale := 1 / math.Sqrt(squares)
	for i, v := range sums {
		out[i] = float32(v * scale)
	}
	return out
}
