package compute

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// PageTokens is how many tokens' keys and values lie together.
const PageTokens = 16

// maxQueries is how many queries meet a page of keys at a time.
const maxQueries = 4

// Heads is the shape of an attention layer: Query heads of Dim dimensions each; Query/KV of them share a head of keys and values.
type Heads struct{ Query, KV, Dim int }

// Page is one layer's keys and values of PageTokens tokens, each of KV·Dim·PageTokens floats: head after head, in a head of keys all
// tokens' first dimension, then the second, and in a head of values token after token.
type Page struct{ Keys, Values []float32 }

// HeadValues are those of one head of the token in a slot.
func (p Page) HeadValues(h Heads, head, slot int) []float32 {
	return p.Values[(head*PageTokens+slot)*h.Dim:][:h.Dim]
}

// ValueNorm is the Euclidean norm of one head's values of the token in a slot.
func (p Page) ValueNorm(h Heads, head, slot int) float64 {
	sum := 0.0
	for _, v := range p.HeadValues(h, head, slot) {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

// Put writes a token's keys and values (KV·Dim floats each) into slot, one of PageTokens.
func (p Page) Put(h Heads, slot int, keys, values []float32) {
	for head := range h.KV {
		to := p.Keys[head*h.Dim*PageTokens:]
		for d, k := range keys[head*h.Dim:][:h.Dim] {
			to[d*PageTokens+slot] = k
		}
		copy(p.HeadValues(h, head, slot), values[head*h.Dim:])
	}
}

// Get reads one head's keys, or values, of the token in a slot.
func (p Page) Get(h Heads, head, slot int, row []float32, values bool) {
	if values {
		copy(row, p.HeadValues(h, head, slot))
		return
	}
	for d := range h.Dim {
		row[d] = p.Keys[(head*h.Dim+d)*PageTokens+slot]
	}
}

// CopyHead copies one head of a token's keys and values from a slot of another page. angles are those of the number of positions that the
// token moves by (see [Rope.Angles]); nil: it stays at its position, and the bits are the same.
func (p Page) CopyHead(h Heads, head, slot int, from Page, fromSlot int, rope *Rope, angles []float32) {
	at := head * h.Dim * PageTokens
	to, keys := p.Keys[at:][:h.Dim*PageTokens], from.Keys[at:][:h.Dim*PageTokens]
	if angles == nil {
		for d := range h.Dim {
			to[d*PageTokens+slot] = keys[d*PageTokens+fromSlot]
		}
	} else {
		rope.move(to[slot:], keys[fromSlot:], angles)
	}
	copy(p.HeadValues(h, head, slot), from.HeadValues(h, head, fromSlot))
}

// Run is a number of consecutive tokens of one sequence among the rows of a call: they are at Position, Position+1, …, and look at
// all tokens up to themselves. Pages are the sequence's, the first token's first, with the rows' own keys and values in them.
type Run struct {
	Rows     int
	Position int
	Pages    []Page
	Probe    *Probe // nil: none
}

// blockRows is how many rows of a run one thread takes at a time.
const blockRows = 16

// task is a thread's part of a call.
type task struct {
	run         *Run
	first, rows int       // first: the row of the call; the run's own is first − start
	start       int       // the call's row with which the run begins
	head        int       // of keys and values
	seen        []float32 // what the rows attend to, if the run has a probe
}

// Attend computes attention for all rows of runs: q and out have one row of Query·Dim floats for each. out may not overlap q.
func (c *Crew) Attend(out, q []float32, h Heads, runs []Run) {
	var tasks []task
	start, work := 0, 0
	for i := range runs {
		r := &runs[i]
		if need := pagesOf(r.Position + r.Rows); r.Rows > 0 && len(r.Pages) < need {
			panic(fmt.Sprintf("compute: run of %d rows at %d: %d pages, want %d", r.Rows, r.Position, len(r.Pages), need))
		}
		for at := 0; at < r.Rows; at += blockRows {
			for head := range h.KV {
				t := task{run: r, first: start + at, rows: min(blockRows, r.Rows-at), start: start, head: head}
				if r.Probe != nil {
					t.seen = make([]float32, min(r.Probe.Tokens, r.Position+at+t.rows))
				}
				tasks = append(tasks, t)
			}
		}
		work += r.Rows * (r.Position + r.Rows) * h.Query * h.Dim
		start += r.Rows
	}
	if len(q) != start*h.Query*h.Dim || len(out) != len(q) {
		panic(fmt.Sprintf("compute: %d rows of %d heads of %d: queries of %d, output of %d floats", start, h.Query, h.Dim, len(q), len(out)))
	}
	c.Each(len(tasks), work, func(from, to int) {
		w := workspaces.Get().(*workspace)
		defer workspaces.Put(w)
		for _, t := range tasks[from:to] {
			w.attend(out, q, h, t)
		}
		clear(w.query[:]) // so that the pool keeps nothing of the caller's
		clear(w.result[:])
		clear(w.out[:])
	})
	for _, t := range tasks { // in their order, whichever thread had them
		if t.run.Probe != nil {
			t.run.Probe.add(t.head, t.seen)
		}
	}
}

// A thread takes blockQueries queries of a head at a time over blockPages pages at a time: these stay in its own caches for all queries.
const (
	blockQueries = 4 * maxQueries
	blockPages   = 32
)

// ahead is how many steps before they are used pages are fetched: they lie anywhere in memory, so the processor cannot guess
// which comes next.
const ahead = 2

// workspace is what one thread needs.
type workspace struct {
	queries []float32 // scaled: of maxQueries queries dimension after dimension, then of the next maxQueries
	weights []float32 // of each query, stride floats for each
	stride  int
	query   [blockQueries][]float32
	result  [blockQueries][]float32
	seen    [blockQueries]int // tokens that each query looks at
	out, in [maxQueries]*float32
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// attend computes one task, some queries at a time: first those of a row, then those of the next.
func (w *workspace) attend(out, q []float32, h Heads, t task) {
	shared, width := h.Query/h.KV, h.Query*h.Dim
	total := t.rows * shared
	for at := 0; at < total; at += blockQueries {
		count := min(blockQueries, total-at)
		for i := range count {
			row, head := t.first+(at+i)/shared, t.head*shared+(at+i)%shared
			w.query[i], w.result[i] = q[row*width+head*h.Dim:][:h.Dim], out[row*width+head*h.Dim:][:h.Dim]
			w.seen[i] = t.run.Position + row - t.start + 1
		}
		w.block(h, t, count)
	}
}

// pagesOf is how many pages have a number of tokens.
func pagesOf(tokens int) int { return (tokens + PageTokens - 1) / PageTokens }

// block computes the first count queries.
func (w *workspace) block(h Heads, t task, count int) {
	w.prepare(h.Dim, count)
	pages, size := pagesOf(w.seen[count-1]), h.Dim*PageTokens
	w.stride = (pages + 1) / 2 * 2 * PageTokens
	w.weights = Grow(w.weights, blockQueries*w.stride)
	for i := range count {
		clear(w.result[i])
	}
	for from := 0; from < pages; from += blockPages {
		for i := 0; i < count; i += maxQueries {
			w.score(h, t, i, min(i+maxQueries, count), from)
		}
	}
	var sums [blockQueries]float32
	for i, tokens := range w.seen[:count] {
		x := w.weights[i*w.stride:][:pagesOf(tokens)*PageTokens]
		for j := tokens; j < len(x); j++ {
			x[j] = float32(math.Inf(-1))
		}
		sums[i] = active.softmax(x)
	}
	if p := t.run.Probe; p != nil {
		for i, tokens := range w.seen[:count] {
			p.row(t.seen, w.weights[i*w.stride:][:tokens], sums[i], p.weight(h, t, tokens-1))
		}
	}
	values := func(p int) []float32 { return t.run.Pages[p].Values[t.head*size:][:size] }
	for p := range pages {
		w.mix(h.Dim, values(p), values(min(p+ahead, pages-1)), p*PageTokens, count)
	}
	for i := range count {
		for d := range w.result[i] {
			w.result[i][d] /= sums[i]
		}
	}
}

// prepare scales the first count queries.
func (w *workspace) prepare(dim, count int) {
	w.queries = Grow(w.queries, blockQueries*dim)
	scale := float32(1 / math.Sqrt(float64(dim)))
	for i, q := range w.query[:count] {
		to := w.queries[i/maxQueries*maxQueries*dim+i%maxQueries:]
		for d, x := range q {
			to[d*maxQueries] = x * scale
		}
	}
}

// score computes the products of queries first to last with the keys of a block of pages.
func (w *workspace) score(h Heads, t task, first, last, from int) {
	size := h.Dim * PageTokens
	keys := func(p int) []float32 { return t.run.Pages[p].Keys[t.head*size:][:size] }
	end := min(pagesOf(w.seen[last-1]), from+blockPages)
	for p := from; p < end; p += 2 {
		var next []float32
		if p+1 < end {
			next = keys(p + 1)
		}
		later := min(p+2*ahead, len(t.run.Pages)-1)
		beyond := min(later+1, len(t.run.Pages)-1)
		out := w.weights[first*w.stride+p*PageTokens:]
		active.scores(h.Dim, w.queries[first*h.Dim:], keys(p), next, keys(later), keys(beyond), last-first, out, w.stride)
	}
}

// mix adds a page's values, of the tokens from at on, to the results of the first count queries.
func (w *workspace) mix(dim int, values, ahead []float32, at, count int) {
	for i := 0; i < count; {
		n, same := min(PageTokens, w.seen[i]-at), 0 // queries that look at as many tokens of the page
		for q := range maxQueries {
			if i+same < count && min(PageTokens, w.seen[i+same]-at) == n && same == q {
				same++
			}
			w.out[q], w.in[q] = &w.result[i+same-1][0], &w.weights[(i+same-1)*w.stride+at]
		}
		if n > 0 {
			active.mix(dim, n, &w.out, &w.in, values, ahead)
		}
		i += same
	}
}

// Grow returns a slice of n numbers, whatever they are, in the memory of s if it is enough.
func Grow(s []float32, n int) []float32 { return slices.Grow(s[:0], n)[:n] }
