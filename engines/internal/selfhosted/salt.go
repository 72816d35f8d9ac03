package selfhosted

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxSalt is the length in characters that vLLM takes; it forbids '@', '/', '\' and NUL.
const MaxSalt = 128

// hashed is the front of salts that do not show their tenant.
const hashed = "h-"

// Salt returns the cache salt of a tenant: its name if that is short and of letters, digits, '_', '.' and '-', a hash of
// it otherwise. Different tenants have different salts. No tenant has none.
func Salt(tenant string) string {
	if tenant == "" || plain(tenant) {
		return tenant
	}
	sum := sha256.Sum256([]byte(tenant))
	return hashed + hex.EncodeToString(sum[:])
}

func plain(s string) bool {
	if len(s) > MaxSalt || len(s) >= len(hashed) && s[:len(hashed)] == hashed {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}
