package compute

import (
	"fmt"
	"math"
	"sync"
)

// PageTokens is how many tokens' keys and values lie together.
const PageTokens = 16

// maxQueries is how many queries meet a page of keys at a time.
const maxQueries = 4

// Heads is the shape of an attention layer: Query heads of Dim dimensions each, of which Query/KV share a head of keys and values.
type Heads struct{ Query, KV, Dim int }

// Page is one layer's keys and values of PageTokens tokens, each of KV·Dim·PageTokens floats: head after head, in a head of keys all
// tokens' first dimension, then the second, and in a head of values token after token.
type Page struct{ Keys, Values []float32 }

// Put writes a token's keys and values (KV·Dim floats each) into slot, one of PageTokens.
func (p Page) Put(h Heads, slot int, keys, values []float32) {
	for head := range h.KV {
		to := p.Keys[head*h.Dim*PageTokens:]
		for d, k := range keys[head*h.Dim:][:h.Dim] {
			to[d*PageTokens+slot] = k
		}
		copy(p.Values[(head*PageTokens+slot)*h.Dim:][:h.Dim], values[head*h.Dim:])
	}
}

// Run is a number of consecutive tokens of one sequence among the rows of a call: they are at Position, Position+1, …, and look at
// all tokens up to themselves. Pages are the sequence's, the first token's first, with the rows' own keys and values in them.
type Run struct {
	Rows     int
	Position int
	Pages    []Page
}

// blockRows is how many rows of a run one thread takes at a time.
const blockRows = 16

// task is a thread's part of a call.
type task struct {
	run         *Run
	first, rows int // first: the row of the call; the run's own is first − start
	start       int // the call's row with which the run begins
	head        int // of keys and values
}

// Attend computes attention for all rows of runs: q and out have one row of Query·Dim floats for each. out may not overlap q.
func (c *Crew) Attend(out, q []float32, h Heads, runs []Run) {
	var tasks []task
	start, work := 0, 0
	for i := range runs {
		r := &runs[i]
		if need := (r.Position + r.Rows + PageTokens - 1) / PageTokens; r.Rows > 0 && len(r.Pages) < need {
			panic(fmt.Sprintf("compute: run of %d rows at %d: %d pages, want %d", r.Rows, r.Position, len(r.Pages), need))
		}
		for at := 0; at < r.Rows; at += blockRows {
			for head := range h.KV {
				tasks = append(tasks, task{run: r, first: start + at, rows: min(blockRows, r.Rows-at), start: start, head: head})
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
	})
}

// workspace is what one thread needs.
type workspace struct {
	queries []float32
	weights [maxQueries][]float32
	sums    [maxQueries][PageTokens]float32
	query   [maxQueries][]float32
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// attend computes one task, a few queries at a time: first those of a row, then those of the next.
func (w *workspace) attend(out, q []float32, h Heads, t task) {
	shared, width := h.Query/h.KV, h.Query*h.Dim
	total := t.rows * shared
	w.queries = grow(w.queries, maxQueries*h.Dim*lanes)
	scale := float32(1 / math.Sqrt(float64(h.Dim)))
	for at := 0; at < total; at += maxQueries {
		count := min(maxQueries, total-at)
		var result [maxQueries][]float32
		var seen [maxQueries]int // tokens that each query looks at
		for i := range count {
			row, head := t.first+(at+i)/shared, t.head*shared+(at+i)%shared
			w.query[i], result[i] = q[row*width+head*h.Dim:][:h.Dim], out[row*width+head*h.Dim:][:h.Dim]
			seen[i] = t.run.Position + row - t.start + 1
		}
		active.prepare(h.Dim, w.queries, w.query[:count], scale)
		w.score(h, t, count, seen[count-1])
		for i := range count {
			w.mix(result[i], w.weights[i], h, t, seen[i])
		}
	}
}

// score computes the products of count prepared queries with the keys of the first tokens.
func (w *workspace) score(h Heads, t task, count, tokens int) {
	pages := (tokens + PageTokens - 1) / PageTokens
	for i := range count {
		w.weights[i] = grow(w.weights[i], pages*PageTokens)
	}
	size := h.Dim * PageTokens
	for p := range pages {
		active.scores(h.Dim, w.queries, t.run.Pages[p].Keys[t.head*size:][:size], count, &w.sums)
		for i := range count {
			copy(w.weights[i][p*PageTokens:], w.sums[i][:])
		}
	}
}

// mix turns the scores of the first tokens into weights and writes the weighted mean of their values to result.
func (w *workspace) mix(result, weights []float32, h Heads, t task, tokens int) {
	pages := (tokens + PageTokens - 1) / PageTokens
	weights = weights[:pages*PageTokens]
	for i := tokens; i < len(weights); i++ {
		weights[i] = float32(math.Inf(-1))
	}
	sum := active.softmax(weights)
	clear(result)
	size := h.Dim * PageTokens
	for p := range pages {
		count := min(PageTokens, tokens-p*PageTokens)
		active.mix(result, weights[p*PageTokens:], t.run.Pages[p].Values[t.head*size:][:size], count)
	}
	for i := range result {
		result[i] /= sum
	}
}

// grow returns a slice of n floats, s itself if that is large enough.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n+n/2)[:n]
	}
	return s[:n]
}
