package llama

import (
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// Span is a run of one sequence's tokens to compute. Several spans of a call may have the same pages, in any order: in each
// layer the keys and values of all are written before any token attends, each to what is at and before its own position.
type Span struct {
	Tokens   []int32
	Position int // of the first of them in its sequence
	// Pages are the sequence's, of the model's Pool, from its first token to the span's last. The span's own keys are written there.
	Pages  []gpu.Page
	Logits int // for how many of the last tokens logits are wanted
	// Best gets the token of the largest of the last logits, of equal ones the first, in place of all logits of the span; nil: they are
	// wanted themselves.
	Best *int32
	// Probes collect what the tokens attend to, in each layer; nil: none. An element may be nil, and several may be the same.
	Probes []*compute.Probe
}

// Worker computes forward passes, one at a time. Its memory grows to the largest call's.
type Worker struct {
	model  *Model
	stream gpu.Stream

	// What the rows of a call need, and the memory that it lies in.
	x, h, q, k, v, sum, gate, up, angles, results gpu.Buffer
	memory                                        [10]gpu.Buffer
	turns                                         []float32 // that angles get
	logits                                        []float32 // of a device with memory of its own
	tokens, kept, best                            []int32
	runs                                          [2][]gpu.Run
}

// NewWorker returns a worker that spreads its work over threads, where the device has any. It must be closed.
func (m *Model) NewWorker(threads int) (*Worker, error) {
	stream, err := m.device.NewStream(threads)
	if err != nil {
		return nil, err
	}
	return &Worker{model: m, stream: stream}, nil
}

// Close gives the worker's memory back.
func (w *Worker) Close() {
	w.stream.Close()
	for _, b := range w.memory {
		w.model.device.Free(b)
	}
	clear(w.memory[:])
}

// Forward computes the spans and returns the wanted logits, a row of Vocab floats for each, in the spans' order, without those of spans
// with Best. They are valid until the next call. It panics if a token is not in the vocabulary or pages are missing: the caller knows
// both. An error is the device's; what the pages have of the spans' tokens is not known then.
func (w *Worker) Forward(spans []Span) ([]float32, error) {
	rows, wanted, err := w.begin(spans)
	if rows == 0 || err != nil {
		return nil, err
	}
	probed := slices.ContainsFunc(spans, func(s Span) bool { return s.Probes != nil })
	all, some := w.batches(spans, wanted > 0 && !probed)
	for i := range w.model.layers {
		last := i == len(w.model.layers)-1
		w.attention(i, all, some, last && !probed)
		if last {
			if rows = wanted; probed {
				w.keep()
			}
		}
		if rows > 0 {
			w.feedForward(i, rows)
		}
	}
	return w.finish(spans, wanted)
}

// finish returns the logits of the wanted rows.
func (w *Worker) finish(spans []Span, wanted int) ([]float32, error) {
	m := w.model
	if wanted == 0 {
		return nil, w.stream.Sync()
	}
	logits, x := w.results, w.x.First(wanted*m.Hidden)
	w.stream.Norm(x, x, m.norm, m.Eps)
	w.stream.MatMul(logits, x, wanted, &m.output)
	best := func(s Span) bool { return s.Best != nil }
	if logits.Host != nil && !slices.ContainsFunc(spans, best) {
		return logits.Host, w.stream.Sync()
	}
	rows := 0
	for _, s := range spans {
		if s.Best == nil {
			rows += s.Logits
		}
	}
	w.logits = compute.Grow(w.logits, rows*m.Vocab)
	w.best = slices.Grow(w.best[:0], len(spans))[:len(spans)]
	read := 0
	for i, s := range spans {
		n := s.Logits * m.Vocab
		switch own := logits.First(n); {
		case n == 0:
		case s.Best != nil:
			w.stream.Argmax(w.best[i:i+1], own.Slice(n-m.Vocab, n), m.Vocab)
		default:
			w.stream.Read(w.logits[read:read+n], own)
			read += n
		}
		logits = logits.Slice(n, logits.N)
	}
	if err := w.stream.Sync(); err != nil {
		return nil, err
	}
	for i, s := range spans {
		if s.Best != nil && s.Logits > 0 {
			*s.Best = w.best[i]
		}
	}
	return w.logits[:read], nil
}

// KeysValues computes the keys and values of the first layers only, and writes them to the spans' pages. The rest of the pages
// stays as it is.
func (w *Worker) KeysValues(spans []Span, layers int) error {
	rows, _, err := w.begin(spans)
	if rows == 0 || err != nil {
		return err
	}
	all, _ := w.batches(spans, false)
	for i := range min(layers, len(w.model.layers)) {
		if i == layers-1 {
			w.keysValues(i, all)
			break
		}
		w.attention(i, all, gpu.Batch{}, false)
		w.feedForward(i, rows)
	}
	return w.stream.Sync()
}

// room returns n floats of the worker's own, number at.
func (w *Worker) room(at int, what string, n int) (gpu.Buffer, error) {
	if w.memory[at].N < n {
		more := min(2*w.memory[at].N, n+n/4) // so that it does not grow with each call of a growing number of rows
		w.model.device.Free(w.memory[at])
		var err error
		if w.memory[at], err = w.model.device.Alloc(what, max(n, more)); err != nil {
			w.memory[at] = gpu.Buffer{}
			return gpu.Buffer{}, err
		}
	}
	return w.memory[at].First(n), nil
}

// begin looks up the tokens' vectors and the angles of their positions, and makes room. It returns the number of tokens, and of those
// for which logits are wanted.
func (w *Worker) begin(spans []Span) (rows, wanted int, err error) {
	m := w.model
	w.kept = w.kept[:0]
	for i := range spans {
		s := &spans[i]
		if need := (s.Position + len(s.Tokens) + PageTokens - 1) / PageTokens; len(s.Pages) < need || s.Logits > len(s.Tokens) {
			panic(fmt.Sprintf("llama: span of %d tokens at %d: %d pages, logits of %d", len(s.Tokens), s.Position, len(s.Pages), s.Logits))
		}
		rows, wanted = rows+len(s.Tokens), wanted+s.Logits
		for row := rows - s.Logits; row < rows; row++ {
			w.kept = append(w.kept, int32(row))
		}
	}
	width, shared := m.heads.Query*m.heads.Dim, m.heads.KV*m.heads.Dim
	for i, b := range []struct {
		to   *gpu.Buffer
		what string
		n    int
	}{
		{&w.x, "hidden", rows * m.Hidden},
		{&w.sum, "sums", rows * m.Hidden},
		{&w.h, "attended", rows * max(m.Hidden, width)},
		{&w.q, "queries", rows * width},
		{&w.k, "keys", rows * shared},
		{&w.v, "values", rows * shared},
		{&w.gate, "gate", rows * m.FFN},
		{&w.up, "up", rows * m.FFN},
		{&w.angles, "angles", rows * m.heads.Dim},
		{&w.results, "logits", wanted * m.Vocab},
	} {
		if *b.to, err = w.room(i, b.what, b.n); err != nil {
			return 0, 0, err // nothing was begun
		}
	}
	w.turns, w.tokens = w.turns[:0], w.tokens[:0]
	for _, s := range spans {
		w.tokens = append(w.tokens, s.Tokens...)
		for i := range s.Tokens {
			w.turns = m.rope.Angles(w.turns, s.Position+i)
		}
	}
	if rows > 0 {
		w.stream.Rows(w.x, &m.embedding, w.tokens)
		w.stream.Write(w.angles, w.turns)
	}
	return rows, wanted, nil
}

// batches returns what all rows look at, and, if that is asked for, what the wanted rows look at.
func (w *Worker) batches(spans []Span, last bool) (all, some gpu.Batch) {
	for i := range w.runs {
		w.runs[i] = w.runs[i][:0]
	}
	for _, s := range spans {
		r := gpu.Run{Rows: len(s.Tokens), Position: s.Position, Pages: s.Pages, Probes: s.Probes}
		w.runs[0] = append(w.runs[0], r)
		r.Rows, r.Position = s.Logits, s.Position+len(s.Tokens)-s.Logits
		w.runs[1] = append(w.runs[1], r)
	}
	all = w.stream.Batch(0, w.model.pool, w.runs[0])
	if last {
		some = w.stream.Batch(1, w.model.pool, w.runs[1])
	}
	return all, some
}

// attention adds a layer's attention to x. In the last layer only the wanted rows go on; they are moved together.
func (w *Worker) attention(at int, all, some gpu.Batch, last bool) {
	m, l := w.model, &w.model.layers[at]
	w.keysValues(at, all)
	rows, angles := w.x.N/m.Hidden, w.angles
	if last {
		if rows = len(w.kept); rows == 0 {
			return
		}
		w.keep()
		angles, all = w.angles.First(rows*m.heads.Dim), some
	}
	q := w.q.First(rows * m.heads.Query * m.heads.Dim)
	w.stream.MatMul(q, w.h.First(rows*m.Hidden), rows, &l.query)
	w.adjust(q, l.queryBias, l.queryNorm)
	w.stream.Rotate(q, angles, m.rope)
	out := w.h.First(q.N)
	w.stream.Attend(all, at, out, q)
	sum := w.sum.First(rows * m.Hidden)
	w.stream.MatMul(sum, out, rows, &l.attended)
	w.stream.Add(w.x.First(rows*m.Hidden), sum)
}

// keysValues computes a layer's keys and values of all rows, and stores them. The rows' normalised vectors are left in h.
func (w *Worker) keysValues(at int, all gpu.Batch) {
	m, l := w.model, &w.model.layers[at]
	rows := w.x.N / m.Hidden
	h := w.h.First(rows * m.Hidden)
	w.stream.Norm(h, w.x, l.attentionNorm, m.Eps)
	w.stream.MatMul(w.k, h, rows, &l.key)
	w.stream.MatMul(w.v, h, rows, &l.value)
	w.adjust(w.k, l.keyBias, l.keyNorm)
	w.adjust(w.v, l.valBias, gpu.Buffer{})
	w.stream.Rotate(w.k, w.angles, m.rope)
	w.stream.Store(all, at, w.k, w.v)
}

// adjust adds a bias and normalises heads, where there is such.
func (w *Worker) adjust(rows, bias, norm gpu.Buffer) {
	if bias.N > 0 {
		w.stream.AddRow(rows, bias)
	}
	if norm.N > 0 {
		w.stream.Norm(rows, rows, norm, w.model.Eps)
	}
}

// keep moves the wanted rows of x, h and the angles together.
func (w *Worker) keep() {
	m := w.model
	w.stream.Keep(w.x, m.Hidden, w.kept)
	w.stream.Keep(w.h, m.Hidden, w.kept)
	w.stream.Keep(w.angles, m.heads.Dim, w.kept)
}

// feedForward adds a layer's feed-forward part to the first rows of x.
func (w *Worker) feedForward(at, rows int) {
	m, l := w.model, &w.model.layers[at]
	x, h := w.x.First(rows*m.Hidden), w.h.First(rows*m.Hidden)
	gate, up := w.gate.First(rows*m.FFN), w.up.First(rows*m.FFN)
	w.stream.Norm(h, x, l.feedForwardNorm, m.Eps)
	w.stream.MatMul(gate, h, rows, &l.gate)
	w.stream.MatMul(up, h, rows, &l.up)
	w.stream.Gate(gate, up)
	w.stream.MatMul(h, gate, rows, &l.down)
	w.stream.Add(x, h)
}

// Copy copies the keys and values of n tokens from one sequence's pages to another's, which may not be the same. Where the tokens come to
// stand elsewhere their keys are turned to the new positions: rotations add, so that is exact but for rounding (CacheNotes §3.3, ProphetKV
// §4.1). At the same position the bits are the same. The next Forward, or Sync, has its error.
func (w *Worker) Copy(to []gpu.Page, at int, from []gpu.Page, fromAt, n int) {
	var angles []float32
	if at != fromAt {
		angles = w.model.rope.Angles(nil, at-fromAt)
	}
	w.stream.Move(w.model.pool, to, at, from, fromAt, n, angles, w.model.rope)
}

// Gather copies chosen tokens of each head to the first places of to: see [gpu.Stream].
func (w *Worker) Gather(to, from []gpu.Page, chosen [][][]int) {
	w.stream.Gather(w.model.pool, to, from, chosen)
}

// Turn turns the keys of a page in place: see [gpu.Stream].
func (w *Worker) Turn(page gpu.Page, steps []int32) {
	w.stream.Turn(w.model.pool, page, steps, w.model.rope)
}

// ValueNorms returns the norms of the first n tokens' values in a layer, head after head.
func (w *Worker) ValueNorms(layer int, pages []gpu.Page, n int) ([]float64, error) {
	norms := make([]float64, w.model.heads.KV*n)
	w.stream.ValueNorms(norms, w.model.pool, layer, pages, n)
	return norms, w.stream.Sync()
}

// Largest returns for each row of values, of width floats, the places of the k largest in ascending order.
func (w *Worker) Largest(values []float32, width, k int) ([][]int, error) {
	return w.stream.Largest(values, width, k)
}

// Sync waits for what was begun.
func (w *Worker) Sync() error { return w.stream.Sync() }
