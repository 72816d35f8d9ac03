package orders

import (
	"context"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/base/lru"
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
	part   *budget.Part // nil: there is no budget
	orders *lru.Cache[Key, []uint16]
}

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
	found, ok := t.orders.Get(k)
	return wide(found), ok
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
	first, ok := t.orders.Get(k)
	if ok && len(first) == len(order) {
		return wide(first)
	}
	if !ok {
		t.orders.Put(k, narrow)
	}
	return slices.Clone(order)
}

// places returns those of a tenant, which may be new. The lock is held.
func (m *Memory) places(tenant string) *places {
	t, ok := m.tenants.Get(tenant)
	if ok {
		return t
	}
	t = &places{}
	o := lru.Options[Key, []uint16]{Weight: m.bytes, Weigh: placeWeight}
	if m.budget != nil {
		t.part = m.budget.Part(tenant, "orders", func() int { return m.dropOldest(t) })
		o.Changed = t.part.Add
	}
	t.orders = lru.With(o)
	if _, gone, full := m.tenants.Put(tenant, t); full {
		gone.close()
	}
	return t
}

// dropOldest is for the budget.
func (m *Memory) dropOldest(t *places) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, order, ok := t.orders.DropOldest(); ok {
		return placeWeight(k, order)
	}
	return 0
}

func placeWeight(_ Key, order []uint16) int { return placeBytes + 2*len(order) }

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
	return t.orders.Len()
}

func (t *places) close() {
	if t.part != nil {
		t.part.Close()
	}
}

func wide(order []uint16) []int {
	if order == nil {
		return nil
	}
	out := make([]int, len(order))
	for i, x := range order {
		out[i] = int(x)
	}
	return out
}
