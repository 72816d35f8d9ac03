package redisorders

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"sync"

	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// place names a place of a conversation as Redis knows it: the tenant is a hash.
type place struct {
	tenant [16]byte
	key    orders.Key
}

func placeOf(tenant string, k orders.Key) place {
	sum := sha256.Sum256([]byte(tenant))
	return place{[16]byte(sum[:16]), k}
}

// name is the key of a place in Redis.
func (s *Store) name(p place) string {
	return s.tenantPrefix(p) + base64.RawURLEncoding.EncodeToString(p.key[:])
}

// tenantPrefix begins all keys of a place's tenant, and only those.
func (s *Store) tenantPrefix(p place) string {
	return s.format() + base64.RawURLEncoding.EncodeToString(p.tenant[:]) + ":"
}

// stream is the name of the stream of the latest orders of all tenants. No tenant's keys begin like this.
func (s *Store) stream() string { return s.format() + "latest" }

func (s *Store) format() string { return s.opt.Prefix + strconv.Itoa(orders.Format) + ":" }

// asCame is the order that every replica chooses if it cannot ask: that in which the documents came.
func asCame(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// places is a map by place that forgets the one used longest ago. Safe for concurrent use.
type places[V any] struct {
	mu sync.Mutex
	at *lru.Cache[place, V] // guarded by mu
}

func newPlaces[V any]() places[V] { return places[V]{at: lru.New[place, V](maxLatest)} }

func (m *places[V]) get(p place) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at.Get(p)
}

func (m *places[V]) put(p place, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at.Put(p, value)
}

func (m *places[V]) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at.Len()
}

// forget deletes the places of a tenant.
func (m *places[V]) forget(of place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(of)
}

// drop is forget while mu is held.
func (m *places[V]) drop(of place) {
	for p := range m.at.All() {
		if p.tenant == of.tenant {
			m.at.Delete(p)
		}
	}
}
