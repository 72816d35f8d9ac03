package order

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"
)

// Options say how rows are ordered. The zero value orders the units of every row on their own.
type Options struct {
	Columns Columns // "": PerRow
	// Memory bounds the bytes that planning holds at once, roughly; more go to temporary files. 0: 512 MiB.
	Memory int
	Dir    string // for temporary files; "": the system's
	// Effort bounds the search in each part of the table: steps, of some 10 to 20 ns. 0: 50,000 for each unit of distinct rows, at most
	// 50 million, and 40 million in each part of a large table. Below 0: no search byte for byte.
	Effort int
}

const (
	defaultMemory = 512 << 20
	leastMemory   = 64 << 10
	unitEffort    = 50_000 // for each unit of distinct rows
	mostEffort    = 50_000_000
	partEffort    = 40_000_000 // in each part of a large table
	partRows      = 25_000     // rows in a part of a large table
	wholeRows     = 60_000     // a larger table is planned in parts
)

// Totals are sums over all rows.
type Totals struct {
	Rows      int
	Requests  int
	Bytes     int64 // of the units of all rows
	Saved     int64 // of these, what the plan saves: shared prefixes, and rows that an equal row's request answers
	FileOrder int64 // what rows and units in their given order save
	Bound     int64 // what no plan can save more than; see the package's description
}

// Plan is an order of all rows. Close it after use.
type Plan struct {
	Totals Totals
	sorted *sorter
}

// New plans a table. It reads the source once or, if the table is large, up to three times.
func New(ctx context.Context, src Source, o Options) (*Plan, error) {
	switch o.Columns {
	case "":
		o.Columns = PerRow
	case PerRow, Fixed, AsIs:
	default:
		return nil, fmt.Errorf("order: columns %q: want %s, %s or %s", o.Columns, PerRow, Fixed, AsIs)
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	o.Memory = max(o.Memory, leastMemory)
	p := newPlanner(o)
	plan, err := p.run(ctx, src)
	if err == nil {
		return plan, nil
	}
	return nil, errors.Join(err, p.planned.close(), p.file.close(), p.texts.close())
}

// planner collects the prompts of a plan.
type planner struct {
	Options
	planned *sorter // prompts as planned
	file    *sorter // prompts as given
	texts   *sorter // texts of units
	totals  Totals
	lock    sync.Mutex
	entry   entry
}

func newPlanner(o Options) *planner {
	return &planner{
		Options: o, planned: &sorter{dir: o.Dir, limit: o.Memory / 4}, file: &sorter{dir: o.Dir, limit: o.Memory / 4},
		texts: &sorter{dir: o.Dir, limit: o.Memory / 8},
	}
}

func (p *planner) run(ctx context.Context, src Source) (*Plan, error) {
	l := newLoader()
	row, large := 0, false
	for units, err := range src.Rows() {
		if err != nil {
			return nil, err
		}
		if row&1023 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l.add(row, units)
		row++
		if large = l.size > p.Memory/4 || len(l.sets) > wholeRows; large {
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if large {
		if err := p.large(ctx, src); err != nil {
			return nil, err
		}
		return p.finish(ctx)
	}
	effort := p.Effort
	if effort == 0 {
		effort = l.effort()
	}
	by, err := p.choose(ctx, l, effort, false)
	if err != nil {
		return nil, err
	}
	if err := p.put(l, by); err != nil {
		return nil, err
	}
	return p.finish(ctx)
}

// choose returns a function that gives the order of a row, which is valid until the next call; nil: as given.
func (p *planner) choose(ctx context.Context, l *loader, effort int, alone bool) (func(set int32) []int32, error) {
	given := func(int32) []int32 { return nil }
	switch {
	case len(l.sets) == 0 || p.Columns == AsIs:
		return given, nil
	case p.Columns == Fixed:
		columns, ok := l.columns()
		if !ok {
			return nil, errUneven
		}
		var by []int32
		for _, c := range l.columnOrder(columns) {
			by = append(by, int32(c))
		}
		return func(int32) []int32 { return by }, nil
	}
	units, err := l.plan(ctx, effort, alone)
	if err != nil {
		return nil, err
	}
	var by []int32
	return func(k int32) []int32 {
		by = positions(by[:0], l.sets[k], units[k])
		return by
	}, nil
}

var errUneven = errors.New("order: rows have different numbers of units, which one order of columns cannot have")

// put adds the rows of a loader to the plan.
func (p *planner) put(l *loader, by func(int32) []int32) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	for i, k := range l.of {
		err := p.entry.add(p.planned, &l.part, l.sets[k], by(k), l.rows[i])
		if err == nil {
			err = p.entry.add(p.file, &l.part, l.sets[k], nil, l.rows[i])
		}
		if err != nil {
			return err
		}
		for _, u := range l.sets[k] {
			p.totals.Bytes += int64(len(l.text[u]))
		}
	}
	p.totals.Rows += len(l.of)
	for _, text := range l.text {
		if err := p.texts.add(text, nil); err != nil {
			return err
		}
	}
	return nil
}

// finish counts, and keeps the better of the plan and the rows as given.
func (p *planner) finish(ctx context.Context) (*Plan, error) {
	t := &p.totals
	least := int64(0) // the size of a trie of all unlike texts, each of which some request has to compute
	err := p.texts.each(ctx, func(key, _ []byte, shared int) error {
		least += int64(len(key) - shared)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var given int
	if t.FileOrder, given, err = count(ctx, p.file); err != nil {
		return nil, err
	}
	if t.Saved, t.Requests, err = count(ctx, p.planned); err != nil {
		return nil, err
	}
	if t.Saved < t.FileOrder {
		t.Saved, t.Requests, p.planned, p.file = t.FileOrder, given, p.file, p.planned
	}
	t.Bound = max(t.Bytes-least, t.Saved)
	if err := errors.Join(p.file.close(), p.texts.close()); err != nil {
		return nil, err
	}
	return &Plan{Totals: *t, sorted: p.planned}, nil
}

// count returns what a sorter's prompts save, and how many requests they need.
func count(ctx context.Context, s *sorter) (saved int64, requests int, err error) {
	var same sameRows
	err = s.each(ctx, func(key, load []byte, shared int) error {
		saved += int64(shared)
		if !same.next(key, load, shared) {
			requests++
		}
		return nil
	})
	return saved, requests, err
}

// sameRows recognises rows with the same units, which follow each other.
type sameRows struct {
	load   []byte
	length int
}

func (s *sameRows) next(key, load []byte, shared int) bool {
	by := load[:len(load)-rowBytes]
	same := s.load != nil && shared == len(key) && s.length == shared && bytes.Equal(s.load, by)
	s.load, s.length = append(s.load[:0], by...), len(key)
	return same
}

// entry writes a prompt and what is needed to read it back: its order, the lengths of its units and the row.
type entry struct{ key, load []byte }

const rowBytes = 8

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

// readEntry returns the order and the row of an entry.
func readEntry(load []byte) (by []int, row int) {
	n, k := binary.Uvarint(load)
	load = load[k:]
	by = make([]int, n)
	for i := range by {
		at, k := binary.Uvarint(load)
		_, k2 := binary.Uvarint(load[k:])
		load = load[k+k2:]
		by[i] = int(at)
	}
	return by, int(binary.BigEndian.Uint64(load))
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

var errStop = errors.New("stop")

// Requests yields the requests in order of execution, sorted by their prompts, so that each shares most with the one before. An error
// ends the sequence.
func (p *Plan) Requests() iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		var now Request
		var same sameRows
		err := p.sorted.each(context.Background(), func(key, load []byte, shared int) error {
			by, row := readEntry(load)
			if same.next(key, load, shared) {
				now.Rows = append(now.Rows, row)
				return nil
			}
			if now.Rows != nil && !yield(now, nil) {
				return errStop
			}
			now = Request{Row: row, Order: by, Rows: []int{row}, Shared: shared}
			return nil
		})
		switch {
		case errors.Is(err, errStop):
		case err != nil:
			yield(Request{}, err)
		case now.Rows != nil:
			yield(now, nil)
		}
	}
}

// Close removes temporary files. Requests must not run.
func (p *Plan) Close() error { return p.sorted.close() }
