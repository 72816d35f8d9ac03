package orders

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/internal/lru"
	"github.com/ragpilot/ragpilot/internal/lru/budget"
)

const (
	// DefaultBytes of a tenant are some 100,000 places of 20 documents.
	DefaultBytes = 16 << 20
	// DefaultTenants is the proxy's default.
	DefaultTenants = 64
	// placeBytes is about what a place takes beside its order: list element, map entry, slice header.
	placeBytes = 160
)

// Memory is a Store of one process: for each tenant the places that were asked for last.
type Memory struct {
	bytes   int            // of each tenant
	budget  *budget.Budget // of all tenants; nil: none
	mu      sync.Mutex
	tenants *lru.Cache[string, *places]
}

// places are those of one tenant, guarded by the Memory's mu.
type places struct {
	part  *budget.Part // nil: there is no budget
	bytes int
	order list.List // of *place, last used first
	at    map[Key]*list.Element
}

// place is never changed.
type place struct {
	key   Key
	order []uint16
}

func (p *place) bytes() int { return placeBytes + 2*len(p.order) }

// NewMemory returns a Memory that keeps about so many bytes for each tenant (0: DefaultBytes), and the tenants that came
// last (0: DefaultTenants). The last place that was put is kept whatever it takes.
func NewMemory(bytes, tenants int) *Memory {
	if bytes <= 0 {
		bytes = DefaultBytes
	}
	if tenants <= 0 {
		tenants = DefaultTenants
	}
	return &Memory{bytes: bytes, tenants: lru.New[string, *places](tenants)}
}

// NewMemoryIn is [NewMemory] with places that count in a budget, too.
func NewMemoryIn(b *budget.Budget, tenants int) *Memory {
	m := NewMemory(0, tenants)
	m.budget = b
	return m
}

// Get never waits; it does not look at the context.
func (m *Memory) Get(_ context.Context, tenant string, k Key) (order []int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tenants.Get(tenant)
	if !ok {
		return nil, false
	}
	if p := t.get(k); p != nil {
		return wide(p.order), true
	}
	return nil, false
}

// Put never waits; it does not look at the context.
func (m *Memory) Put(_ context.Context, tenant string, k Key, order []int) (winner []int) {
	if !Valid(order) {
		return nil
	}
	narrow := make([]uint16, len(order))
	for i, x := range order {
		narrow[i] = uint16(x)
	}
	if m.budget != nil {
		defer m.budget.Settle() // without the lock
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.places(tenant)
	if first := t.get(k); first != nil {
		if len(first.order) == len(order) {
			return wide(first.order)
		}
		return slices.Clone(order)
	}
	t.add(&place{key: k, order: narrow}, m.bytes)
	return slices.Clone(order)
}

// places returns those of a tenant, which may be new. The lock is held.
func (m *Memory) places(tenant string) *places {
	t, ok := m.tenants.Get(tenant)
	if ok {
		return t
	}
	t = &places{at: map[Key]*list.Element{}}
	if m.budget != nil {
		t.part = m.budget.Part(tenant, "orders", func() int { return m.dropOldest(t) })
	}
	if _, gone, full := m.tenants.Put(tenant, t); full {
		gone.close()
	}
	return t
}

// dropOldest is for the budget.
func (m *Memory) dropOldest(t *places) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.order.Len() == 0 {
		return 0
	}
	return t.drop()
}

// Forget drops all of a tenant at once. Its error is nil.
func (m *Memory) Forget(_ context.Context, tenant string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, ok := m.tenants.Get(tenant); ok {
		t.close()
		m.tenants.Delete(tenant)
	}
	return nil
}

// Len returns the number of places of a tenant.
func (m *Memory) Len(tenant string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tenants.Get(tenant)
	if !ok {
		return 0
	}
	return t.order.Len()
}

// get returns a place and marks it as used; nil if it is not there.
func (t *places) get(k Key) *place {
	e, ok := t.at[k]
	if !ok {
		return nil
	}
	t.order.MoveToFront(e)
	return e.Value.(*place)
}

// add takes in a place that is not there and lets go of those used least recently.
func (t *places) add(p *place, limit int) {
	t.at[p.key] = t.order.PushFront(p)
	t.count(p.bytes())
	for t.bytes > limit && t.order.Len() > 1 {
		t.drop()
	}
}

// drop lets go of the place used least recently, and returns its weight.
func (t *places) drop() int {
	last := t.order.Remove(t.order.Back()).(*place)
	delete(t.at, last.key)
	t.count(-last.bytes())
	return last.bytes()
}

func (t *places) count(n int) {
	t.bytes += n
	if t.part != nil {
		t.part.Add(n)
	}
}

func (t *places) close() {
	if t.part != nil {
		t.part.Close()
	}
}

func wide(order []uint16) []int {
	out := make([]int, len(order))
	for i, x := range order {
		out[i] = int(x)
	}
	return out
}
