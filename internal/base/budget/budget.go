package budget

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/internal/base/queue"
)

// Default is the limit in bytes if nothing else is set.
const Default = 256 << 20

// Budget counts what is remembered. Safe for concurrent use.
type Budget struct {
	limit int64

	over atomic.Bool // the parts exceed what is left for them

	mu       sync.Mutex // guards all below; never held while a part drops
	reserved int64
	used     int64 // by parts
	tenants  map[string]*holder
	most     *queue.Queue[*holder] // the same, the one that holds most on top
	tables   map[string]*Table
}

// Table is what one table holds of all tenants, and what it has lost for the budget.
type Table struct {
	Bytes                       int64
	Reserved                    bool  // Bytes are a fixed share, which the table does not exceed
	EvictedEntries, EvictedSize int64 // since the start
}

// holder is what one tenant holds.
type holder struct {
	name  string
	bytes int64
	parts []*Part
	place int // in the heap

	now  *Part // loses next
	left int64 // bytes that it is to lose before another one is chosen
}

// Part is what one tenant holds in one table.
type Part struct {
	budget *Budget
	drop   func() (bytes int)

	// Guarded by budget.mu.
	of     *holder
	table  *Table
	bytes  int64
	closed bool
}

// New returns a Budget of limit bytes; 0 or less: [Default].
func New(limit int64) *Budget {
	if limit <= 0 {
		limit = Default
	}
	most := queue.New(func(a, b *holder) bool { return a.bytes > b.bytes }, func(h *holder) *int { return &h.place })
	return &Budget{limit: limit, tenants: map[string]*holder{}, most: most, tables: map[string]*Table{}}
}

// Reserve takes a fixed share for a table that bounds itself. The parts have the rest.
func (b *Budget) Reserve(table string, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.table(table)
	t.Bytes += bytes
	t.Reserved = true
	b.reserved += bytes
	b.check()
}

// Part returns a new, empty part of a table. drop forgets its least recently used entry, takes what that weighed from the
// part with [Part.Add], and returns it; 0 if there is none. It is called without any lock, by whichever goroutine settles.
func (b *Budget) Part(tenant, table string, drop func() (bytes int)) *Part {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.tenants[tenant]
	if h == nil {
		h = &holder{name: tenant}
		b.tenants[tenant] = h
		b.most.Push(h)
	}
	p := &Part{budget: b, drop: drop, of: h, table: b.table(table)}
	h.parts = append(h.parts, p)
	return p
}

// table returns the counts of a name. The lock is held.
func (b *Budget) table(name string) *Table {
	t := b.tables[name]
	if t == nil {
		t = &Table{}
		b.tables[name] = t
	}
	return t
}

// Add counts n more bytes, or fewer if n is negative. Nothing is dropped, so the lock of a table may be held.
func (p *Part) Add(n int) {
	p.budget.mu.Lock()
	defer p.budget.mu.Unlock()
	if !p.closed {
		p.add(int64(n))
	}
}

// add is Add for who holds the lock.
func (p *Part) add(n int64) {
	b := p.budget
	p.bytes += n
	p.table.Bytes += n
	p.of.bytes += n
	b.used += n
	b.most.Moved(p.of)
	b.check()
}

// check notes whether something must go. The lock is held.
func (b *Budget) check() { b.over.Store(b.used > b.limit-b.reserved && b.used > 0) }

// Close forgets the part, whose entries are gone. What is added to it later does not count. More than once is once.
func (p *Part) Close() {
	b := p.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.closed {
		return
	}
	p.add(-p.bytes)
	p.closed = true
	h := p.of
	h.parts = slices.DeleteFunc(h.parts, func(x *Part) bool { return x == p })
	if len(h.parts) == 0 {
		b.most.Remove(h)
		delete(b.tenants, h.name)
	}
}

// Settle drops entries until everything fits. No lock that a part's drop takes may be held.
func (b *Budget) Settle() {
	for idle := 0; b.over.Load() && idle < maxIdle; {
		p := b.next()
		if p == nil {
			return
		}
		n := p.drop()
		if idle++; n > 0 { // else another goroutine was faster
			idle = 0
		}
		b.dropped(p, int64(n))
	}
}

// dropped counts an entry that a part has lost; of no bytes: it had none.
func (b *Budget) dropped(p *Part, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.of.left -= n; n <= 0 {
		p.of.left = 0
		return
	}
	p.table.EvictedEntries++
	p.table.EvictedSize += n
}

// maxIdle is how often Settle tries in vain: what is counted and not there must not hold up a request.
const maxIdle = 16

// next returns the part that loses next: one of the tenant that holds most, chosen by chance in proportion to what it holds,
// for some bytes at a time. So all of a tenant's parts lose what is of about the same age. Nil if nothing is held.
func (b *Budget) next() *Part {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.most.Len() == 0 || b.most.Top().bytes <= 0 {
		return nil
	}
	h := b.most.Top()
	if h.left > 0 && !h.now.closed {
		return h.now
	}
	at := rand.Int64N(h.bytes)
	for _, p := range h.parts {
		if at -= p.bytes; at < 0 {
			h.now, h.left = p, h.bytes/dropAtATime
			return p
		}
	}
	return nil
}

// dropAtATime is which part of what a tenant holds is lost at a time. It is far more than one entry, so that entries of any size go
// in proportion.
const dropAtATime = 64

// Limit returns the limit in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// Tables returns the counts of all tables by their names.
func (b *Budget) Tables() map[string]Table {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string]Table, len(b.tables))
	for name, t := range b.tables {
		out[name] = *t
	}
	return out
}

// Held returns the bytes that count for a tenant.
func (b *Budget) Held(tenant string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.tenants[tenant]; h != nil {
		return h.bytes
	}
	return 0
}
