//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// As in kernels/attention.cu.
const (
	queries = 16
	chunk   = 128
	maxDim  = 256
)

// enoughBlocks keep a card busy; with fewer, chunks become blocks of their own. The results are the same bits. Tests change it.
var enoughBlocks = 512

// maxPartial is how many bytes blocks of chunks may write.
const maxPartial = 64 << 20

// batch is a [gpu.Batch] on the card.
type batch struct {
	pool   *pool
	tables memory // addresses of pages, then rows, then tasks
	rows   uint64 // where they are on the card
	tasks  uint64
	count  int   // of rows
	first  []int // of each run: its first row, and one more
	task   []int // of each run: its first task, and one more
	seen   int   // tokens that the row with the most looks at
}

// groups are how many blocks have the queries that share a head.
func groups(h compute.Heads) int { return blocks(h.Query/h.KV, queries) }

// Batch implements [gpu.Stream].
func (s *stream) Batch(kind int, of gpu.Pool, runs []gpu.Run) gpu.Batch {
	b, p := &s.batches[kind], of.(*pool)
	b.pool, b.count, b.seen, b.first, b.task = p, 0, 0, b.first[:0], b.task[:0]
	taskRows := max(1, queries/(p.heads.Query/p.heads.KV))
	var table, rows []uint64
	var tasks []uint32
	type place struct{ at, pages int }
	places := map[*gpu.Page]place{} // of lists of pages in the table: runs may share them
	for _, r := range runs {
		need := blocks(r.Position+r.Rows, compute.PageTokens)
		if r.Rows > 0 && len(r.Pages) < need {
			panic(fmt.Sprintf("cuda: run of %d rows at %d: %d pages, want %d", r.Rows, r.Position, len(r.Pages), need))
		}
		b.first, b.task = append(b.first, b.count), append(b.task, len(tasks)/2)
		if r.Rows == 0 {
			continue
		}
		list := unsafe.SliceData(r.Pages)
		known := places[list]
		if known.pages < need {
			known = place{len(table), len(r.Pages)}
			places[list] = known
			for _, page := range r.Pages {
				table = append(table, page.Addr)
			}
		}
		for row := range r.Rows {
			if row%taskRows == 0 {
				tasks = append(tasks, uint32(b.count+row), uint32(min(taskRows, r.Rows-row)))
			}
			rows = append(rows, uint64(known.at)|uint64(r.Position+row)<<32)
		}
		b.count, b.seen = b.count+r.Rows, max(b.seen, r.Position+r.Rows)
	}
	b.first, b.task = append(b.first, b.count), append(b.task, len(tasks)/2)
	if b.count > 0 && s.need(&b.tables, 8*len(table)+8*len(rows)+4*len(tasks)) {
		b.rows = b.tables.address + uint64(8*len(table))
		b.tasks = b.rows + uint64(8*len(rows))
		s.send(b.tables.address, view(table), "pages")
		s.send(b.rows, view(rows), "rows")
		s.send(b.tasks, view(tasks), "rows")
	}
	return gpu.Batch{Runs: runs, Own: b}
}

// Store implements [gpu.Stream].
func (s *stream) Store(of gpu.Batch, layer int, keys, values gpu.Buffer) {
	b := of.Own.(*batch)
	h := b.pool.heads
	want("store", keys, b.count*h.KV*h.Dim)
	want("store", values, b.count*h.KV*h.Dim)
	s.await(b.pool, layer)
	what := fmt.Sprintf("keys and values of layer %d", layer)
	s.launch("store", what, [3]int{b.count, 1, 1}, threads, keys.Addr, values.Addr, b.rows, b.tables.address,
		b.pool.layer(layer), uint64(h.KV), uint64(h.Dim))
}

// Attend implements [gpu.Stream].
func (s *stream) Attend(of gpu.Batch, layer int, out, q gpu.Buffer) {
	b := of.Own.(*batch)
	h := b.pool.heads
	if n := b.count * h.Query * h.Dim; q.N != n || out.N != n {
		panic(fmt.Sprintf("cuda: %d rows of %d heads of %d: queries of %d, output of %d floats", b.count, h.Query, h.Dim, q.N, out.N))
	}
	if b.count == 0 {
		return
	}
	s.await(b.pool, layer)
	sums := uint64(0)
	for _, r := range of.Runs {
		if r.Rows > 0 && r.Probes != nil && r.Probes[layer] != nil {
			if !s.need(&s.sums, 4*b.count*h.Query) {
				return
			}
			sums = s.sums.address
		}
	}
	s.attend(b, layer, 0, len(b.task)-1, out.Addr, sums, q.Addr, math.MaxInt32)
	for i, r := range of.Runs {
		if sums != 0 && r.Rows > 0 && r.Probes != nil && r.Probes[layer] != nil {
			s.probe(b, layer, i, r, q.Addr)
		}
	}
}

// attend launches the attention of runs first to last−1. out may be 0.
func (s *stream) attend(b *batch, layer, first, last int, out, sums, q uint64, limit int) {
	h := b.pool.heads
	kernel, what := "attend_256", fmt.Sprintf("queries of layer %d", layer)
	switch {
	case h.Dim <= 64:
		kernel = "attend_64"
	case h.Dim <= 128:
		kernel = "attend_128"
	}
	tasks, heads := b.task[last]-b.task[first], h.KV*groups(h)
	chunks, split := blocks(min(b.seen, limit), chunk), 1
	if bytes := 4 * b.count * h.Query * chunks * (h.Dim + 2); chunks > 1 && tasks*heads < enoughBlocks && bytes <= maxPartial {
		if s.grow(&s.partial, bytes) == nil { // otherwise one block takes all chunks, which gives the same bits
			split = chunks
		}
	}
	if s.failed() {
		return
	}
	s.launch(kernel, what, [3]int{tasks, heads, split}, 128, out, sums, q, b.tasks+uint64(8*b.task[first]), b.rows, b.tables.address,
		s.partial.address, b.pool.layer(layer), uint64(h.Query), uint64(h.KV), uint64(h.Dim), uint64(limit), scale(h), uint64(chunks))
	if split == 1 {
		return
	}
	row := b.first[first]
	at := func(address uint64, floats int) uint64 { // of the first row
		if address == 0 {
			return 0
		}
		return address + 4*uint64(row*h.Query*floats)
	}
	s.launch("attend_join", what, [3]int{b.first[last] - row, h.Query, 1}, 32, at(out, h.Dim), at(sums, 1),
		at(s.partial.address, chunks*(h.Dim+2)), b.rows+uint64(8*row), uint64(h.Query), uint64(h.Dim), uint64(limit), uint64(chunks))
}

// scale is what products of queries and keys are multiplied by.
func scale(h compute.Heads) uint64 { return float(float32(1 / math.Sqrt(float64(h.Dim)))) }

// probe adds to a probe's columns what the rows of a run attend to.
func (s *stream) probe(b *batch, layer, run int, r gpu.Run, q uint64) {
	p, h := r.Probes[layer], b.pool.heads
	tokens := min(p.Tokens, r.Position+r.Rows)
	columns := s.columnsOf(p)
	if tokens <= 0 || columns == 0 {
		return
	}
	logs, weights, first := s.sums.address, uint64(0), uint64(b.first[run])
	if p.Within {
		if !s.need(&s.within, 4*b.count*h.Query) {
			return
		}
		logs = s.within.address
		s.attend(b, layer, run, run+1, 0, logs, q, p.Tokens)
	}
	what, kv, dim := fmt.Sprintf("queries of layer %d", layer), uint64(h.KV), uint64(h.Dim)
	if p.Rows == compute.ValueNorm {
		if !s.need(&s.norms, 4*b.count*h.KV) {
			return
		}
		weights = s.norms.address
		s.launch("row_norms", what, [3]int{blocks(r.Rows*h.KV, 128), 1, 1}, 128, weights+4*first*kv, b.rows+8*first, b.tables.address,
			uint64(r.Rows), b.pool.layer(layer), kv, dim)
	}
	s.launch("probe", what, [3]int{blocks(tokens, 32), h.KV, 1}, 128, columns, q, logs, b.rows, b.tables.address, weights, first,
		uint64(r.Rows), b.pool.layer(layer), uint64(h.Query), kv, dim, uint64(p.Tokens), scale(h), flag(p.Rows == compute.Position),
		flag(p.Most))
}

// columnsBytes is how much memory for columns of probes is allocated at a time.
const columnsBytes = 1 << 20

// columnsOf is where a probe's columns are on the card: zeros at first. 0: the stream has failed, or there are none.
func (s *stream) columnsOf(p *compute.Probe) uint64 {
	if address, ok := s.probes[p]; ok || len(p.Sums) == 0 {
		return address
	}
	bytes := (4*len(p.Sums) + 255) / 256 * 256
	if s.columns.bytes == 0 && !s.need(&s.columns, columnsBytes) {
		return 0
	}
	address := s.columns.address + uint64(s.place)
	if s.place+bytes <= s.columns.bytes {
		s.place += bytes
	} else {
		var err error
		if address, err = s.d.alloc("alloc", s.columns.what, int64(bytes)); err != nil {
			s.fail("alloc", s.columns.what, err)
			return 0
		}
		s.more = append(s.more, address)
	}
	s.probes[p] = address
	s.launch("fill", s.columns.what, flat(len(p.Sums)), threads, address, uint64(len(p.Sums)), 0)
	return address
}

// dropProbes forgets the probes. The stream has been waited for.
func (s *stream) dropProbes() {
	clear(s.probes)
	for _, address := range s.more {
		s.d.release(address)
	}
	s.more, s.place = s.more[:0], 0
}
