package prefixdiff

// aging is a map of bounded size: it has two halves, and forgets the older one when the younger one is full. An entry that is read
// becomes young again.
type aging[K comparable, V any] struct {
	young, old map[K]aged[V]
	bytes      int64 // of the young half
	older      int64 // of the old half
	limit      int64 // of both
}

type aged[V any] struct {
	value V
	bytes uint32
}

func newAging[K comparable, V any](limit int64) *aging[K, V] {
	return &aging[K, V]{young: map[K]aged[V]{}, limit: limit}
}

func (m *aging[K, V]) get(k K) (V, bool) {
	if e, ok := m.young[k]; ok {
		return e.value, true
	}
	e, ok := m.old[k]
	if ok {
		m.put(k, e.value, int64(e.bytes))
	}
	return e.value, ok
}

func (m *aging[K, V]) put(k K, v V, bytes int64) {
	if e, ok := m.young[k]; ok {
		m.bytes -= int64(e.bytes)
	}
	if m.bytes+bytes > m.limit/2 && len(m.young) > 0 {
		m.old, m.young, m.older, m.bytes = m.young, map[K]aged[V]{}, m.bytes, 0
	}
	m.young[k] = aged[V]{v, uint32(min(bytes, 1<<31))}
	m.bytes += bytes
}

// size is what both halves take.
func (m *aging[K, V]) size() int64 { return m.bytes + m.older }
