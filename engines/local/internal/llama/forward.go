package llama

import (
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

// Span is a run of one sequence's tokens to compute. Several spans of a call may have the same pages, in any order: in each
// layer the keys and values of all are written before any token attends, each to what is at and before its own position.
type Span struct {
	Tokens   []int32
	Position int // of the first of them in its sequence
	// Pages are the sequence's, of PageFloats each, from its first token to the span's last. The span's own keys are written there.
	Pages  [][]float32
	Logits int // for how many of the last tokens logits are wanted
	// Probes collect what the tokens attend to, in each layer; nil: none. An element may be nil, and several may be the same.
	Probes []*compute.Probe
}

// Worker computes forward passes, one at a time. Its memory grows to the largest call's.
type Worker struct {
	model *Model
	crew  *compute.Crew

	x, h, q, k, v, sum, gate, up []float32
	angles, logits               []float32
	runs                         []compute.Run
	lists                        [][]compute.Page // of runs
}

// NewWorker returns a worker that spreads its work over threads.
func (m *Model) NewWorker(threads int) *Worker {
	return &Worker{model: m, crew: compute.NewCrew(threads)}
}

// Forward computes the spans and returns the wanted logits, a row of Vocab floats for each, in the spans' order. They are valid
// until the next call. It panics if a token is not in the vocabulary or pages are missing: the caller knows both.
func (w *Worker) Forward(spans []Span) []float32 {
	rows, wanted := w.begin(spans)
	if rows == 0 {
		return nil
	}
	probed := slices.ContainsFunc(spans, func(s Span) bool { return s.Probes != nil })
	for i := range w.model.layers {
		last := i == len(w.model.layers)-1
		w.attention(i, spans, last && !probed)
		if last {
			if rows = wanted; probed {
				w.keep(spans)
			}
		}
		if rows > 0 {
			w.feedForward(i, rows)
		}
	}
	m := w.model
	w.logits = compute.Grow(w.logits, wanted*m.Vocab)
	if wanted > 0 {
		x := w.x[:wanted*m.Hidden]
		w.crew.Norm(x, x, m.norm, m.Eps)
		w.crew.MatMul(w.logits, x, wanted, &m.output)
	}
	return w.logits
}

// KeysValues computes the keys and values of the first layers only, and writes them to the spans' pages. The rest of the pages
// stays as it is.
func (w *Worker) KeysValues(spans []Span, layers int) {
	rows, _ := w.begin(spans)
	for i := range min(layers, len(w.model.layers)) {
		if rows == 0 {
			return
		}
		if i == layers-1 {
			w.keysValues(i, spans)
			return
		}
		w.attention(i, spans, false)
		w.feedForward(i, rows)
	}
}

// begin looks up the tokens' vectors and the angles of their positions, and makes room. It returns the number of tokens, and of those
// for which logits are wanted.
func (w *Worker) begin(spans []Span) (rows, wanted int) {
	m := w.model
	for i := range spans {
		s := &spans[i]
		if need := (s.Position + len(s.Tokens) + PageTokens - 1) / PageTokens; len(s.Pages) < need || s.Logits > len(s.Tokens) {
			panic(fmt.Sprintf("llama: span of %d tokens at %d: %d pages, logits of %d", len(s.Tokens), s.Position, len(s.Pages), s.Logits))
		}
		rows, wanted = rows+len(s.Tokens), wanted+s.Logits
	}
	width, shared := m.heads.Query*m.heads.Dim, m.heads.KV*m.heads.Dim
	w.x, w.sum, w.h = compute.Grow(w.x, rows*m.Hidden), compute.Grow(w.sum, rows*m.Hidden), compute.Grow(w.h, rows*max(m.Hidden, width))
	w.q, w.k, w.v = compute.Grow(w.q, rows*width), compute.Grow(w.k, rows*shared), compute.Grow(w.v, rows*shared)
	w.gate, w.up = compute.Grow(w.gate, rows*m.FFN), compute.Grow(w.up, rows*m.FFN)
	w.angles = w.angles[:0]
	row := 0
	for _, s := range spans {
		for i, token := range s.Tokens {
			m.embedding.Row(w.x[row*m.Hidden:][:m.Hidden], int(token))
			w.angles = m.rope.Angles(w.angles, s.Position+i)
			row++
		}
	}
	return rows, wanted
}

// attention adds a layer's attention to x. In the last layer only the wanted rows go on; they are moved together.
func (w *Worker) attention(at int, spans []Span, last bool) {
	m, l := w.model, &w.model.layers[at]
	w.keysValues(at, spans)
	rows, angles := len(w.x)/m.Hidden, w.angles
	if last {
		rows, angles = w.keep(spans)
		if rows == 0 {
			return
		}
	}
	q := w.q[:rows*m.heads.Query*m.heads.Dim]
	w.crew.MatMul(q, w.h[:rows*m.Hidden], rows, &l.query)
	w.adjust(q, l.queryBias, l.queryNorm)
	w.rotate(q, angles)
	out := w.h[:len(q)]
	w.crew.Attend(out, q, m.heads, w.pages(at, spans, last))
	sum := w.sum[:rows*m.Hidden]
	w.crew.MatMul(sum, out, rows, &l.attended)
	compute.Add(w.x[:rows*m.Hidden], sum)
}

// keysValues computes a layer's keys and values of all rows, and stores them. The rows' normalised vectors are left in h.
func (w *Worker) keysValues(at int, spans []Span) {
	m, l := w.model, &w.model.layers[at]
	rows := len(w.x) / m.Hidden
	h := w.h[:rows*m.Hidden]
	w.crew.Norm(h, w.x, l.attentionNorm, m.Eps)
	w.crew.MatMul(w.k, h, rows, &l.key)
	w.crew.MatMul(w.v, h, rows, &l.value)
	w.adjust(w.k, l.keyBias, l.keyNorm)
	w.adjust(w.v, l.valBias, nil)
	w.rotate(w.k, w.angles)
	w.store(at, spans)
}

// adjust adds a bias and normalises heads, where there is such.
func (w *Worker) adjust(rows, bias, norm []float32) {
	if bias != nil {
		compute.AddRow(rows, bias)
	}
	if norm != nil {
		w.crew.Norm(rows, rows, norm, w.model.Eps)
	}
}

// rotate turns all heads of all rows by their positions' angles.
func (w *Worker) rotate(x, angles []float32) {
	dim := w.model.heads.Dim
	rows := len(angles) / dim
	width := len(x) / rows
	w.crew.Each(rows, 4*len(x), func(from, to int) {
		for i := from; i < to; i++ {
			w.model.rope.Rotate(x[i*width:][:width], angles[i*dim:][:dim])
		}
	})
}

// store writes the rows' keys and values into their pages.
func (w *Worker) store(layer int, spans []Span) {
	m := w.model
	width, row := m.heads.KV*m.heads.Dim, 0
	for _, s := range spans {
		for i := range s.Tokens {
			at := s.Position + i
			page := m.Page(s.Pages[at/PageTokens], layer)
			page.Put(m.heads, at%PageTokens, w.k[row*width:][:width], w.v[row*width:][:width])
			row++
		}
	}
}

// keep moves the wanted rows of x and h together and returns their number and their angles.
func (w *Worker) keep(spans []Span) (rows int, angles []float32) {
	n, dim, row := w.model.Hidden, w.model.heads.Dim, 0
	for _, s := range spans {
		row += len(s.Tokens)
		for from := row - s.Logits; from < row; from++ {
			copy(w.x[rows*n:][:n], w.x[from*n:][:n])
			copy(w.h[rows*n:][:n], w.h[from*n:][:n])
			copy(w.angles[rows*dim:][:dim], w.angles[from*dim:][:dim])
			rows++
		}
	}
	return rows, w.angles[:rows*dim]
}

// pages returns what each span's rows look at, in the last layer only the wanted rows. Spans with the same pages share the list.
func (w *Worker) pages(layer int, spans []Span, last bool) []compute.Run {
	w.runs = w.runs[:0]
	lists := 0
	for i, s := range spans {
		r := compute.Run{Rows: len(s.Tokens), Position: s.Position}
		if s.Probes != nil {
			r.Probe = s.Probes[layer]
		}
		if last {
			r.Rows, r.Position = s.Logits, s.Position+len(s.Tokens)-s.Logits
		}
		if i > 0 && len(s.Pages) > 0 && len(s.Pages) == len(spans[i-1].Pages) && &s.Pages[0] == &spans[i-1].Pages[0] {
			r.Pages = w.runs[i-1].Pages
		} else {
			if lists == len(w.lists) {
				w.lists = append(w.lists, nil)
			}
			list := w.lists[lists][:0]
			for _, memory := range s.Pages {
				list = append(list, w.model.Page(memory, layer))
			}
			w.lists[lists], r.Pages = list, list
			lists++
		}
		w.runs = append(w.runs, r)
	}
	return w.runs
}

// feedForward adds a layer's feed-forward part to the first rows of x.
func (w *Worker) feedForward(at, rows int) {
	m, l := w.model, &w.model.layers[at]
	x, h := w.x[:rows*m.Hidden], w.h[:rows*m.Hidden]
	gate, up := w.gate[:rows*m.FFN], w.up[:rows*m.FFN]
	w.crew.Norm(h, x, l.feedForwardNorm, m.Eps)
	w.crew.MatMul(gate, h, rows, &l.gate)
	w.crew.MatMul(up, h, rows, &l.up)
	w.crew.Gate(gate, up)
	w.crew.MatMul(h, gate, rows, &l.down)
	compute.Add(x, h)
}
