package order

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/zeebo/xxh3"
)

// Options say how rows are ordered. The zero value orders the units of every row on their own.
type Options struct {
	Columns Columns // "": PerRow
	// Memory bounds the bytes of the table that are held at once, in whole; about three times as many are used. More go to temporary
	// files. 0: 256 MiB.
	Memory int
	Dir    string // for temporary files; "": the system's
	// Effort bounds the search in each part of the table: steps, of some 10 to 20 ns. 0: 50,000 for each
	// unit of distinct rows, at most 150 million. Below 0: no search byte for byte.
	Effort int
}

// Totals are sums over all rows.
type Totals struct {
	Rows      int
	Requests  int
	Bytes     int64 // of the units of all rows
	Saved     int64 // of these, what the plan saves: shared prefixes, and rows that an equal row's request answers
	FileOrder int64 // what rows and units in their given order save
	Bound     int64 // what no plan can save more than; see the package's description
}

// Plan is an order of all rows.
type Plan struct {
	Totals Totals
	sorted *sorter
}

// New plans a table. It reads the source once or, if it is larger than Options.Memory, several times.
func New(ctx context.Context, src Source, o Options) (*Plan, error) {
	switch o.Columns {
	case "":
		o.Columns = PerRow
	case PerRow, Fixed, AsIs:
	default:
		return nil, fmt.Errorf("order: columns %q: want %s, %s or %s", o.Columns, PerRow, Fixed, AsIs)
	}
	if o.Memory <= 0 {
		o.Memory = 256 << 20
	}
	l := newLoader()
	n := 0
	for units, err := range src.Rows() {
		if err != nil {
			return nil, err
		}
		if n&1023 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		n++
		l.add(units)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return l.plan(ctx, o)
}

// loader numbers texts and finds equal rows.
type loader struct {
	part
	byText map[string]int32
	bySet  map[uint64][]int32
	of     []int32 // by row: the first equal one's place in sets
	ids    []int32
	key    []byte
}

func newLoader() *loader {
	return &loader{byText: map[string]int32{}, bySet: map[uint64][]int32{}}
}

func (l *loader) add(units []string) {
	l.ids, l.key = l.ids[:0], l.key[:0]
	for _, s := range units {
		u, ok := l.byText[s]
		if !ok {
			u = int32(len(l.text))
			text := []byte(s)
			l.text = append(l.text, text)
			l.byText[string(text)] = u
		}
		l.ids = append(l.ids, u)
		l.key = binary.LittleEndian.AppendUint32(l.key, uint32(u))
	}
	h := xxh3.Hash(l.key)
	for _, r := range l.bySet[h] {
		if slices.Equal(l.sets[r], l.ids) {
			l.of = append(l.of, r)
			return
		}
	}
	r := int32(len(l.sets))
	l.bySet[h] = append(l.bySet[h], r)
	l.sets = append(l.sets, slices.Clone(l.ids))
	l.of = append(l.of, r)
}

// effort returns the default of [Options.Effort].
func (l *loader) effort() int {
	const each, most = 50_000, 150_000_000
	units := 0
	for _, set := range l.sets {
		units += len(set)
	}
	return min(units, most/each) * each
}

func (l *loader) plan(ctx context.Context, o Options) (*Plan, error) {
	l.byText, l.bySet = nil, nil
	orders := func(int32) []int32 { return nil } // positions; nil: as given
	var err error
	switch {
	case len(l.sets) == 0:
	case o.Columns == PerRow:
		if o.Effort == 0 {
			o.Effort = l.effort()
		}
		var units [][]int32
		units, err = l.part.plan(ctx, o.Effort)
		var by []int32
		orders = func(k int32) []int32 {
			by = positions(by[:0], l.sets[k], units[k])
			return by
		}
	case o.Columns == Fixed:
		columns, ok := l.columns()
		if !ok {
			return nil, errors.New("order: rows have different numbers of units, which one order of columns cannot have")
		}
		var by []int32
		for _, c := range l.columnOrder(columns) {
			by = append(by, int32(c))
		}
		orders = func(int32) []int32 { return by }
	}
	if err != nil {
		return nil, err
	}
	planned, file := &sorter{dir: o.Dir, limit: o.Memory}, &sorter{dir: o.Dir, limit: o.Memory}
	p := &Plan{sorted: planned}
	var entry entry
	for row, k := range l.of {
		if err := errors.Join(entry.add(planned, &l.part, l.sets[k], orders(k), row), entry.add(file, &l.part, l.sets[k], nil, row)); err != nil {
			return nil, err
		}
		for _, u := range l.sets[k] {
			p.Totals.Bytes += int64(len(l.text[u]))
		}
	}
	p.Totals.Rows = len(l.of)
	saved := func(s *sorter) (int64, error) {
		n := int64(0)
		err := s.each(ctx, func(_, _ []byte, shared int) error {
			n += int64(shared)
			return nil
		})
		return n, err
	}
	if p.Totals.Saved, err = saved(planned); err != nil {
		return nil, err
	}
	if p.Totals.FileOrder, err = saved(file); err != nil {
		return nil, err
	}
	if p.Totals.Saved < p.Totals.FileOrder {
		p.Totals.Saved, p.sorted, file = p.Totals.FileOrder, file, planned
	}
	if err := file.close(); err != nil {
		return nil, err
	}
	for _, err := range p.Requests() {
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.Totals.Requests++
	}
	p.Totals.Bound = max(p.Totals.Bytes-l.least(), p.Totals.Saved)
	return p, nil
}

// least is the size of a trie of all unlike texts, each of which some request has to compute.
func (p *part) least() int64 {
	by := slices.Clone(p.text)
	slices.SortFunc(by, bytes.Compare)
	n := int64(0)
	var before []byte
	for _, text := range by {
		n += int64(len(text) - common(before, text))
		before = text
	}
	return n
}

// entry writes a prompt and what is needed to read it back.
type entry struct{ key, load []byte }

func (e *entry) add(s *sorter, p *part, set, by []int32, row int) error {
	e.key, e.load = e.key[:0], e.load[:0]
	e.load = binary.AppendUvarint(e.load, uint64(len(set)))
	for i := range set {
		at := int32(i)
		if by != nil {
			at = by[i]
		}
		text := p.text[set[at]]
		e.key = append(e.key, text...)
		e.load = binary.AppendUvarint(e.load, uint64(at))
		e.load = binary.AppendUvarint(e.load, uint64(len(text)))
	}
	e.load = binary.BigEndian.AppendUint64(e.load, uint64(row))
	return s.add(e.key, e.load)
}

// positions appends where the units of order stand in set. Equal units keep their order.
func positions(dst, set, order []int32) []int32 {
	for i, u := range order {
		nth := 0
		for _, v := range order[:i] {
			if v == u {
				nth++
			}
		}
		for at, v := range set {
			if v != u {
				continue
			}
			if nth == 0 {
				dst = append(dst, int32(at))
				break
			}
			nth--
		}
	}
	return dst
}

// Requests yields the requests in order of execution.
func (p *Plan) Requests() iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		var now Request
		var load, before []byte
		var length int
		stop := errors.New("stop")
		err := p.sorted.each(context.Background(), func(key, l []byte, shared int) error {
			same := shared == len(key) && length == len(key) && string(load[:max(len(load)-8, 0)]) == string(l[:len(l)-8])
			row := int(binary.BigEndian.Uint64(l[len(l)-8:]))
			length = len(key)
			load = append(load[:0], l...)
			if same && now.Rows != nil {
				now.Rows = append(now.Rows, row)
				return nil
			}
			if now.Rows != nil && !yield(now, nil) {
				return stop
			}
			_ = before
			now = Request{Row: row, Rows: []int{row}, Shared: shared}
			n, k := binary.Uvarint(l)
			l = l[k:]
			for range n {
				at, k := binary.Uvarint(l)
				_, k2 := binary.Uvarint(l[k:])
				l = l[k+k2:]
				now.Order = append(now.Order, int(at))
			}
			return nil
		})
		if errors.Is(err, stop) {
			return
		}
		if err != nil {
			yield(Request{}, err)
			return
		}
		if now.Rows != nil {
			yield(now, nil)
		}
	}
}

// Close removes temporary files.
func (p *Plan) Close() error { return p.sorted.close() }
