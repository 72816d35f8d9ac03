package order

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"
)

const (
	sampleRows  = 20_000
	mostParts   = 1024
	placeVisits = 40 // places looked at for the part of one row
)

// large plans a table that is too large to be held. Orders of one kind are written right away. For orders of their own, rows are divided
// into parts by a trie of sampled rows: rows that go down the same branch belong together. Parts are planned one after the other.
func (p *planner) large(ctx context.Context, src Source) error {
	s := sample{most: p.Memory / 8, rnd: rand.New(rand.NewPCG(0, 2))}
	if p.Columns != AsIs {
		if err := s.read(ctx, src); err != nil {
			return err
		}
	}
	l := newLoader()
	for i, units := range s.rows {
		l.add(i, units)
	}
	if p.Columns != PerRow {
		return p.stream(ctx, src, l)
	}
	parts := min(max(s.seen/partRows, int(s.bytes/int64(p.Memory/16))+1, 2), mostParts)
	place, err := newPlacer(ctx, l, parts)
	if err != nil {
		return err
	}
	return p.inParts(ctx, src, place, parts)
}

// sample draws rows, each as likely as any other.
type sample struct {
	most  int // bytes
	rnd   *rand.Rand
	rows  [][]string
	held  int
	seen  int
	bytes int64 // of all rows seen
}

func (s *sample) read(ctx context.Context, src Source) error {
	for units, err := range src.Rows() {
		if err != nil {
			return err
		}
		if s.seen&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		s.bytes += int64(bytesOf(units))
		s.seen++
		switch at := s.rnd.IntN(s.seen); {
		case len(s.rows) < sampleRows && s.held < s.most || len(s.rows) == 0:
			s.rows = append(s.rows, slices.Clone(units))
			s.held += bytesOf(units)
		case at < len(s.rows):
			s.held += bytesOf(units) - bytesOf(s.rows[at])
			s.rows[at] = slices.Clone(units)
		}
		for s.held > s.most && len(s.rows) > 1 {
			last := len(s.rows) - 1
			s.held -= bytesOf(s.rows[last])
			s.rows = s.rows[:last]
		}
	}
	return ctx.Err()
}

func bytesOf(units []string) int {
	n := 0
	for _, u := range units {
		n += len(u) + cellBytes
	}
	return n
}

// stream writes rows in one order of columns, which the sample decides, or as they are.
func (p *planner) stream(ctx context.Context, src Source, sample *loader) error {
	by, err := p.choose(ctx, sample, -1, true)
	if err != nil {
		return err
	}
	var order []int32
	if p.Columns == Fixed {
		order = by(0)
	}
	l, row := newLoader(), 0
	flush := func() error {
		err := p.put(l, func(int32) []int32 { return order })
		l = newLoader()
		return err
	}
	for units, err := range src.Rows() {
		if err != nil {
			return err
		}
		if row&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if p.Columns == Fixed && len(units) != len(order) {
			return errUneven
		}
		l.add(row, units)
		row++
		if l.size > p.Memory/8 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return errors.Join(ctx.Err(), flush())
}

// placer finds the part that a row belongs to.
type placer struct {
	t      *trie
	byText map[string]int32
	part   []int32 // by node
	f      finder
	ids    []int32
}

func newPlacer(ctx context.Context, l *loader, parts int) (*placer, error) {
	orders, err := l.merge(ctx)
	if err != nil {
		return nil, err
	}
	t := newTrie(l.text, orders)
	t.fill()
	p := &placer{t: t, byText: l.byText, part: make([]int32, len(t.nodes))}
	p.f = finder{t: t, limit: placeVisits}
	seen := 0
	var walk func(v int32)
	walk = func(v int32) {
		p.part[v] = int32(seen * parts / len(l.sets))
		if t.nodes[v].kid == none {
			seen++
		}
		kids := []int32{}
		for c := t.nodes[v].kid; c != none; c = t.nodes[c].next {
			kids = append(kids, c)
		}
		slices.Sort(kids)
		for _, c := range kids {
			walk(c)
		}
	}
	walk(0)
	return p, nil
}

// place returns the part of a row, which does not depend on the order of its units.
func (p *placer) place(units []string) int32 {
	p.ids = p.ids[:0]
	for _, s := range units {
		if u, ok := p.byText[s]; ok && len(s) > 0 {
			p.ids = append(p.ids, u)
		}
	}
	slices.Sort(p.ids)
	p.f.find(p.ids)
	s := top
	for _, i := range p.f.best {
		_, s = p.t.follow(s, p.ids[i])
	}
	return p.part[s.v]
}

// inParts divides rows into parts and plans those.
func (p *planner) inParts(ctx context.Context, src Source, place *placer, parts int) error {
	f, err := temp(p.Dir)
	if err != nil {
		return err
	}
	w := partWriter{file: f, bufs: make([][]byte, parts), sections: make([][]section, parts), rows: make([]int, parts)}
	row := 0
	for units, err := range src.Rows() {
		if err == nil && row&1023 == 0 {
			err = ctx.Err()
		}
		if err == nil {
			err = w.add(int(place.place(units)), row, units)
		}
		if err != nil {
			return errors.Join(err, drop(f))
		}
		row++
	}
	err = errors.Join(ctx.Err(), w.flush())
	if err == nil {
		err = p.planParts(ctx, &w)
	}
	return errors.Join(err, drop(f))
}

// planParts plans all parts, as many at once as there are cores.
func (p *planner) planParts(ctx context.Context, w *partWriter) error {
	jobs := make(chan int, len(w.sections))
	for i := range w.sections {
		jobs <- i
	}
	close(jobs)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 2) {
		wg.Go(func() {
			for i := range jobs {
				if ctx.Err() != nil {
					return
				}
				if err := p.planPart(ctx, w, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// planPart plans one part. Rows beyond the memory, or beyond twice what a part should have, are planned on their own.
func (p *planner) planPart(ctx context.Context, w *partWriter, i int) error {
	pieces := uint64(max(w.rows[i]/(2*partRows), int(w.size(i)/int64(p.Memory/8))) + 1)
	for piece := range pieces {
		l := newLoader()
		for r, err := range w.read(i) {
			if err != nil {
				return err
			}
			if pieces == 1 || r.hash%pieces == piece {
				l.add(r.row, r.units)
			}
		}
		effort := p.Effort
		if effort == 0 {
			effort = partEffort
		}
		by, err := p.choose(ctx, l, effort, true)
		if err != nil {
			return err
		}
		if err := p.put(l, by); err != nil {
			return err
		}
	}
	return nil
}

// partWriter writes the rows of many parts to one file.
type partWriter struct {
	file     *os.File
	at       int64
	bufs     [][]byte
	sections [][]section
	rows     []int
	key      []byte
}

// stored is a row in the file.
type stored struct {
	row   int
	hash  uint64 // of its units
	units []string
}

func (w *partWriter) add(part, row int, units []string) error {
	w.rows[part]++
	w.key = w.key[:0]
	for _, u := range units {
		w.key = append(binary.AppendUvarint(w.key, uint64(len(u))), u...)
	}
	b := binary.AppendUvarint(w.bufs[part], uint64(row))
	b = binary.LittleEndian.AppendUint64(b, xxh3.Hash(w.key))
	b = append(binary.AppendUvarint(b, uint64(len(units))), w.key...)
	w.bufs[part] = b
	if len(b) < runBuffer {
		return nil
	}
	return w.write(part)
}

func (w *partWriter) write(part int) error {
	n, err := w.file.WriteAt(w.bufs[part], w.at)
	if err != nil {
		return fmt.Errorf("write to a temporary file: %w", err)
	}
	w.sections[part] = append(w.sections[part], section{w.at, w.at + int64(n)})
	w.at += int64(n)
	w.bufs[part] = w.bufs[part][:0]
	return nil
}

func (w *partWriter) flush() error {
	for part := range w.bufs {
		if err := w.write(part); err != nil {
			return err
		}
		w.bufs[part] = nil
	}
	return nil
}

func (w *partWriter) size(part int) int64 {
	n := int64(0)
	for _, s := range w.sections[part] {
		n += s.to - s.from
	}
	return n
}

// read yields the rows of a part.
func (w *partWriter) read(part int) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		for _, s := range w.sections[part] {
			r := bufio.NewReaderSize(io.NewSectionReader(w.file, s.from, s.to-s.from), runBuffer)
			for {
				row, err := readRow(r)
				if errors.Is(err, io.EOF) {
					break
				}
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// readRow returns io.EOF behind the last row.
func readRow(r *bufio.Reader) (stored, error) {
	row, err := binary.ReadUvarint(r)
	if err != nil {
		return stored{}, err
	}
	var hash [8]byte
	if _, err := io.ReadFull(r, hash[:]); err != nil {
		return stored{}, errCut
	}
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return stored{}, errCut
	}
	out := stored{row: int(row), hash: binary.LittleEndian.Uint64(hash[:]), units: make([]string, n)}
	for i := range out.units {
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return stored{}, errCut
		}
		text := make([]byte, n)
		if _, err := io.ReadFull(r, text); err != nil {
			return stored{}, errCut
		}
		out.units[i] = string(text)
	}
	return out, nil
}
