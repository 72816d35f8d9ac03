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

// memory keeps prompts and their parts, in two halves like [aging]. A part that several prompts have is kept once, and counts in each half
// that has such a prompt.
type memory struct {
	young, old half
	limit      int64 // of both, in bytes
}

type half struct {
	prompts map[uint32]*stored
	parts   map[uint64]*view
	bytes   int64
}

func newHalf() half { return half{prompts: map[uint32]*stored{}, parts: map[uint64]*view{}} }

func newMemory(limit int64) *memory { return &memory{young: newHalf(), old: newHalf(), limit: limit} }

func (m *memory) prompt(number uint32) (*stored, bool) {
	if s, ok := m.young.prompts[number]; ok {
		return s, true
	}
	s, ok := m.old.prompts[number]
	return s, ok
}

// part returns a part that is known, and counts it in the young half.
func (m *memory) part(key uint64) (*view, bool) {
	if v, ok := m.young.parts[key]; ok {
		return v, true
	}
	v, ok := m.old.parts[key]
	if ok {
		m.keep(key, v)
	}
	return v, ok
}

func (m *memory) keep(key uint64, v *view) {
	m.young.parts[key] = v
	m.young.bytes += v.bytes()
}

// put adds a prompt, whose parts were asked for or kept before.
func (m *memory) put(number uint32, s *stored) {
	m.young.prompts[number] = s
	m.young.bytes += promptSize + viewSize*int64(len(s.views))
	if m.young.bytes > m.limit/2 {
		m.old, m.young = m.young, newHalf()
	}
}

func (m *memory) size() int64 { return m.young.bytes + m.old.bytes }
