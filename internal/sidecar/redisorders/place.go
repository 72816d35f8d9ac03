package redisorders

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"

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
